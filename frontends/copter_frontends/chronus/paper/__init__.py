"""Only for the paper's tables: its workloads, errors of profiles, proofs that a promise had to be broken."""
