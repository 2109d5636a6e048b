"""Reading files that agents write to, without being led anywhere else."""
