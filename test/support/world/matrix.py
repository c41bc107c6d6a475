"""A matrix of runs on disk: a room of boxes, mapped and scored by the package itself."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from osmabench_ros.base.files import claim_folder, make_folder, write_json
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.maps.storage import write_map
from osmabench_ros.metrics.message_timing import Staleness
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.reports.tidy import Run
from osmabench_ros.runs import plan as planning
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run, versions
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.matrix_on_disk import FAILURE, MatrixOnDisk, write_manifest
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER, plan_runs
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status, unmet
from osmabench_ros.runs.run_manifest import SHARED_FOLDER, config_of_run
from osmabench_ros.runs.timings import TIMINGS, Measurements, Participation, timings_of
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import seen_instances, write_ground_truth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.vqa.question_files import read_records, write_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Evidence, Question
from support.world import box_room
from support.world.frames import map_frames
from support.world.runs import matrix_config

# Text that would run, were it taken for markup anywhere.
HOSTILE = '</script><img src=x onerror="window.hacked=true"><b id="injected">'

SOFA = 8
SCENE_KEY = SceneKey('boxes', 'room', 0)


@dataclass(frozen=True)
class Matrix:
    """Report, plans and folder of a matrix."""

    report: MatrixReport
    plans: list[planning.RunPlan]
    root: Path


def config():
    """Return the configuration: two lights, a perfect and a flawed mapper and one that dies."""
    voxels = {'voxel_m': 0.05}
    macc = {'suite': 'osma_segmentation', 'metric': 'macc'}
    return matrix_config(
        name='boxes',
        scenes=[{'reference': 'boxes'}],
        conditions=['baseline', 'camera'],
        mappers=[
            {'name': 'oracle', 'options': voxels},
            {'name': 'noisy_oracle', 'options': {**voxels, 'frame_label_confusion': 0.6}},
            {'name': 'broken', 'command': ['false']},
        ],
        suites=[{'name': 'osma_segmentation'}, {'name': 'exact_questions'}],
        requirements=[
            {**macc, 'mode': 'strict', 'mapper': 'oracle', 'at_least': 0.5},
            {**macc, 'metric': 'speed', 'at_least': 1.0},
        ],
    )


def write_matrix(root, settings=None):
    """Make the matrix in a folder; takes a few seconds."""
    settings = settings or config()
    claim_folder(root)
    plans = plan_runs(settings, {settings.scenes[0]: SCENE_KEY}, root)
    write_manifest(root, settings, plans)
    frames = box_room.frames(count=12, size=(80, 60))
    surface = box_room.visible_cloud(frames)
    truth = box_room.ground_truth(
        frames,
        dataset=SCENE_KEY.dataset,
        scene=SCENE_KEY.scene,
        fused=surface,
        seen_instances=seen_instances(surface.instances, 5),
    )
    _write_shared(plans[0].shared_directory, truth)
    reports = [_run(plan, frames, truth) for plan in plans]
    records = tuple(record for report in reports for record in report.metrics)
    report = MatrixReport(
        name=settings.name,
        passed=False,
        runs=tuple(reports),
        failed_requirements=unmet(settings.requirements, records),
        versions=versions(),
        hashes={'config': planning.config_digest(settings)},
    )
    return Matrix(report, plans, root)


def questions():
    """Return a few questions, one of them hostile."""
    texts = [
        ('Existence-Positive', 'Is there a sofa in the scene?', 'yes', (SOFA,)),
        ('Existence-Positive', 'Is there a table in the scene?', 'yes', (6,)),
        ('Existence-Negative', 'Is there a piano in the scene?', 'no', ()),
        ('Measurement', 'How many cups are there in the scene?', 1, (7,)),
        ('Object Attributes', f'What colour has {HOSTILE}?', HOSTILE, (SOFA,)),
    ]
    kinds = {'yes': AnswerType.YES_NO, 'no': AnswerType.YES_NO, 1: AnswerType.INTEGER}
    return [
        Question(
            f'q-{number}',
            'exact_questions',
            str(SCENE_KEY),
            category,
            text,
            kinds.get(answer, AnswerType.TEXT),
            answer,
            evidence=Evidence(nodes),
        )
        for number, (category, text, answer, nodes) in enumerate(texts)
    ]


def _write_shared(directory, truth):
    make_folder(directory)
    states = np.array([[-1, -1, 0], [1, -1, 0], [1, -1, 1.57], [1, 1.5, 1.57]], float)
    path = RobotPath(states, np.zeros(3, np.int64), 0.0)
    write_json(directory / planning.PATH_FILE, path.to_json())
    write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
    write_records(directory / planning.QUESTIONS_FILE, questions())


def _run(plan, frames, truth):
    if plan.identity.mapper == 'broken':
        return RunReport(run_id=plan.identity.run_id, status=Status.FAILED, error=HOSTILE)
    mapper = make_mapper(
        plan.mapper.name, label_set=truth.label_set, seed=0, options=plan.mapper.options
    )
    write_map(_with_hostile_node(map_frames(mapper, frames)), plan.map_directory)
    (plan.directory / 'frames').mkdir()
    for index in (0, 3, 6):
        picture = Image.fromarray(frames[index].color)
        picture.save(plan.directory / 'frames' / f'{index:06d}.png')
    write_json(plan.directory / TIMINGS, timings_of(plan.identity, measurements(plan)))
    suites = list(plan.config.suites)
    report = evaluate_run(inputs_of(plan), suites, plan.config.requirements)
    path = plan.directory / 'vqa' / 'answers.jsonl'
    answers = read_records(path, Answer)
    last = Answer(answers[-1].question_id, HOSTILE, 'test', (999,), HOSTILE)
    write_records(path, [*answers[:-1], last])
    return report


def inputs_of(plan):
    """Return the context for the evaluation of a run of the matrix."""
    return replace(EvaluationInputs.of_plan(plan), device='cpu')


def measurements(plan):
    """Return lockstep for the baseline, and realtime with losses for the other condition."""
    if plan.identity.condition == 'baseline':
        nodes = (Participation('mapper', 12, 12, 12), Participation('map_recorder', 12, 12, 12))
        return Measurements('lockstep', 12, 'mapper', 2.0, nodes)
    return Measurements(
        'realtime',
        12,
        'mapper',
        2.0,
        (
            Participation('mapper', 12, 9, 8, 0.0123, 0.0456, 0.0789, 0.25, 0.01),
            Participation('map_recorder', 12, 12, 12, 0.001, 0.002, 0.003, 0.004),
        ),
        staleness=Staleness(4.25, 11.0, 0.5, 3),
        speed_factor=1.99,
    )


def changed_run(run, metrics=None, *, method=False, **identity):
    """Return a run with other metrics or identity, or of a method without ground truth."""
    plan = replace(run.plan, identity=replace(run.plan.identity, **identity))
    if method:
        plan = replace(plan, mapper=plan.mapper.model_copy(update={'command': ('mine',)}))
    metrics = run.report.metrics if metrics is None else tuple(metrics)
    changes = {'run_id': plan.identity.run_id, 'metrics': metrics}
    return Run(plan, run.report.model_copy(update=changes))


def _with_hostile_node(semantic_map):
    node = SceneNode(999, captions=(HOSTILE,), box=AxisAlignedBox([0, 0, 0], [1, 1, 1]))
    graph = semantic_map.graph
    return replace(semantic_map, graph=SceneGraph((*graph.nodes, node), graph.edges))


def left_by_a_command(matrix, root, settings=None):
    """Return a copy of a matrix with manifests, failures and a report."""
    settings = settings or config()
    shutil.copytree(matrix.root, root)
    plans = plan_runs(settings, {settings.scenes[0]: SCENE_KEY}, root)
    write_manifest(root, settings, plans)
    found = MatrixOnDisk(root)
    plans = list(found.plans.values())
    for plan, report in zip(plans, matrix.report.runs, strict=True):
        if report.status is Status.FAILED:
            write_json(plan.directory / FAILURE, report.model_dump(mode='json'))
        data = {'dataset': 'boxes', 'scene': 'room', 'config': config_of_run(plan)}
        data |= {'seeds': {'scene': SCENE_KEY.seed}, 'versions': {'numpy': '2.0'}}
        data |= {SHARED_FOLDER: plan.shared_directory.name}
        write_json(plan.directory / 'manifest.json', data)
    write_matrix_report(found.config, plans, matrix.report.runs, root)
    return found
