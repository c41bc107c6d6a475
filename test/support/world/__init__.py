"""The small worlds of the tests: scenes, graphs, frames, maps, bags and runs, made when asked."""
