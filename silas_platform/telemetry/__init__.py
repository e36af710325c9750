"""What the installation tells monitoring: `/metrics` for Prometheus, and OTLP to a collector. Off until configured."""
