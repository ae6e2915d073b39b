"""Pictures to play with: from the grid that a run computed to the chart and its script."""
