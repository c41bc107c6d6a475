"""What every room needs and nobody may write twice."""
