"""`python -m osmabench_ros.cli` is the osmabench command."""

from osmabench_ros.cli.entry import main

main()
