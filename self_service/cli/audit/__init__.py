"""The log for auditors: who did what, the state it gives, proofs, and its verification."""
