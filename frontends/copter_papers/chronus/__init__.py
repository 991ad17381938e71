"""Code only for the paper's tables: workloads, errors of profiles, proofs that promises had to be broken."""
