"""What all commands share: options, output, errors, times, completion."""
