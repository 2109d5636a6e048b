"""Reading files and repositories that agents write to, without being led anywhere else."""
