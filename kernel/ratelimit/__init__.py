"""Rate and concurrency limits: fixed windows and leases in Redis, token buckets in the process."""
