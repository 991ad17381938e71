"""What only re-makes the paper: its workloads, errors of its profiles, and proofs that a promise had to be broken."""
