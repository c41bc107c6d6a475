"""Label sets, scene graphs and the relations between objects; shared by ground truth and maps."""
