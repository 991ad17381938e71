"""What if: a change of GPUs, quotas or jobs, tried on copies of a policy, a run or a tape; nothing is committed."""
