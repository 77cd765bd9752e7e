"""What links and statements share: start, stop, fence, and both ends of a flow."""
