"""What is known of a job while it runs: logs, figures, and where they are read."""
