"""What every node shares: QoS, message conversions, parameters."""
