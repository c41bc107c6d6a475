# %% [markdown]
# # Metrics of a matrix of runs
# A notebook in the percent format: Jupyter (with jupytext), VS Code and Spyder open it as cells,
# and `python analysis.py` runs it. It reads `report.json` of `runs/demo`, or of OSMABENCH_RESULTS.

# %%
import os
from collections import defaultdict
from pathlib import Path

import altair as alt
import pandas as pd

from osmabench_ros.base.strict import read_model
from osmabench_ros.runs.report_model import MatrixReport

folder = Path(os.environ.get('OSMABENCH_RESULTS', 'runs/demo'))
report = read_model(MatrixReport, folder / 'report.json')
records = [item for item in report.metrics if item.applicable and item.value is not None]
print(f'{report.name}: {len(report.runs)} runs, {len(records)} values that apply')

# %% [markdown]
# ## One metric, by mapper and condition
# Means over scenes. A metric that does not apply is left out, and does not count as zero.

# %%
chosen = defaultdict(list)
for item in records:
    metric = item.suite, item.mode, item.metric
    if metric == ('osma_segmentation', 'strict', 'iou') and item.class_name:
        chosen[item.mapper, item.condition, item.class_name].append(item.value)
means = {key: sum(values) / len(values) for key, values in chosen.items()}
mappers = sorted({mapper for mapper, _, _ in means})
conditions = list(dict.fromkeys(condition for _, condition, _ in means))
for mapper in mappers:
    for condition in conditions:
        own = [value for key, value in means.items() if key[:2] == (mapper, condition)]
        print(f'{mapper:>16} {condition:>16} mean IoU {100 * sum(own) / len(own):5.1f} %')

# %% [markdown]
# ## Which classes a condition costs most

# %%
first, *others = conditions
losses = sorted(
    (value - means[mapper, first, name], mapper, condition, name)
    for (mapper, condition, name), value in means.items()
    if condition in others and (mapper, first, name) in means
)
for change, mapper, condition, name in losses[:10]:
    print(f'{100 * change:+6.1f} points  {name} of {mapper} under {condition}')

# %% [markdown]
# ## A chart for the paper

# %%
table = pd.DataFrame(losses, columns=['change', 'mapper', 'condition', 'class'])
chart = (
    alt.Chart(table.assign(points=100 * table['change']))
    .mark_point(filled=True)
    .encode(
        alt.X('points:Q').title(f'change of IoU from {first}, points'),
        alt.Y('class:N').sort('x').title(None),
        alt.Color('mapper:N'),
        alt.Shape('condition:N'),
    )
)
chart.save(folder / 'changes_by_class.png', scale_factor=2)
print(f'{folder / "changes_by_class.png"} written')
