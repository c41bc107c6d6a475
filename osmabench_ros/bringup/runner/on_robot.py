"""Recorder and evaluator for a running stack: no simulator, no pacing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from osmabench_ros.base.contract import MAPPER, SEMANTIC_MAP
from osmabench_ros.base.files import check_folder, claim_folder
from osmabench_ros.base.strict import read_model
from osmabench_ros.bringup import definition
from osmabench_ros.bringup.definition import NodeSpec
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.mappers.live_method import load_live_method
from osmabench_ros.maps.export import describe_contents
from osmabench_ros.maps.map_kinds import SEMANTIC_MAP as MAP_TYPE
from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports.page.single_pages import write_bag_page
from osmabench_ros.reports.terminal import print_metrics
from osmabench_ros.ros.node import settings as node_settings
from osmabench_ros.runs.config import MatrixConfig, PacingConfig, PacingMode, Settling
from osmabench_ros.runs.evaluation import REPORT
from osmabench_ros.runs.report_model import BagReport, RunReport, map_remarks, partial_fault
from osmabench_ros.sequences.bags.recording_report import RecordingSettings
from osmabench_ros.sequences.ground_truth import read_ground_truth

MAP_FOLDER, BAG_FOLDER = 'map', 'bag'


@dataclass(frozen=True)
class OnRobot:
    """Settings of recording and scoring a running stack; the folder must not exist yet.

    Without ground truth the map is recorded and not scored; without questions they are made from
    it. `stack` (a name in config/methods/live, or a YAML file) or `map_topic` and `map_type` say
    who publishes the map; all are empty for a stack that publishes `semantic_map` itself.

    `map_frame_is_world`: the map is in the frame of the ground truth though TF does not say so;
    `names` are scene, condition, mapper and simulator for the report, where no run_info has them.
    """

    out: Path
    config: MatrixConfig
    ground_truth: Path | None = None
    questions: Path | None = None
    stack: str = ''
    map_topic: str = ''
    map_type: str = ''
    variables: Mapping[str, str] = field(default_factory=dict)
    map_frame_is_world: bool = False
    settling: Settling = field(default_factory=Settling)
    record: bool = False
    names: Mapping[str, str] = field(default_factory=dict)


def nodes_on_robot(settings: OnRobot) -> list[NodeSpec]:
    """Return the nodes; the evaluator ends the run, or the map recorder if there is none."""
    check_folder(settings.out)
    adapters = _make_adapter(settings)
    own_topics = [topic for spec in adapters for topic in spec.topics]
    recorder = definition.map_recorder(
        settings.out / MAP_FOLDER,
        PacingConfig(mode=PacingMode.REALTIME),
        MAPPER if adapters else '',
        exit_when_done=settings.ground_truth is None,
    )
    specs = [*adapters, recorder]
    if settings.record:
        recording = RecordingSettings(more_topics=tuple(own_topics))
        specs.append(definition.recorder_node(settings.out / BAG_FOLDER, recording))
    if settings.ground_truth is not None:
        read_ground_truth(settings.ground_truth)
        evaluator = definition.evaluator(
            settings.config,
            settings.ground_truth,
            settings.questions,
            settings.out,
            settling=settings.settling,
            use_run_info=False,
            **settings.names,
        )
        specs.append(evaluator)
    claim_folder(settings.out)
    return specs


def _make_adapter(settings: OnRobot) -> list[NodeSpec]:
    if settings.stack and settings.map_topic:
        raise ConfigError('give stack:= or map_topic:=, not both; a stack knows its topic')
    frame = {'map_frame_is_world': settings.map_frame_is_world, 'settling': settings.settling}
    if settings.map_topic:
        given = node_settings.MapAdapterSettings(
            method=settings.names.get('mapper') or 'unknown',
            map_topic=settings.map_topic,
            map_type=settings.map_type,
        )
        return [definition.adapter(given.model_copy(update=frame))]
    if not settings.stack:
        return []
    # The stack runs already: only its topic and its service are needed, never its files.
    values = definition.stack_values(settings.out, OPTICAL_IN_LINK, variables=settings.variables)
    method = load_live_method(settings.stack).filled(values)
    given = definition.adapter_settings(method)
    return [definition.adapter(given.model_copy(update=frame), method)]


def conclude(settings: OnRobot, exit_code: int) -> str:
    """Print the metrics, write the page, return verdict and path; RunError if the run failed."""
    scored = settings.ground_truth is not None and (settings.out / REPORT).is_file()
    if exit_code and not scored:
        raise RunError(f'the run ended with exit code {exit_code}; see the messages above')
    made = read_map(settings.out / MAP_FOLDER)
    if not scored:
        summary = '; '.join((describe_contents(made), *map_remarks(made.header)))
        summary = f'recorded, not scored: {summary}; {settings.out / MAP_FOLDER}'
        if not (made.header.complete or settings.settling.allow_partial):
            raise RunError(f'{summary}. {partial_fault(MAP_FOLDER)}')
        return summary
    report = read_model(RunReport, settings.out / REPORT)
    page = write_bag_page(
        BagReport(
            **{name: value for name, value in report if name not in ('schema_name', 'remarks')},
            bag=str(settings.out / BAG_FOLDER) if settings.record else 'not recorded',
            map_topic=f'/{SEMANTIC_MAP}',
            map_type=MAP_TYPE,
            frame_id=made.header.frame_id,
            stamp_ns=made.header.stamp_ns,
            reference=str(settings.ground_truth),
            remarks=(*report.remarks, describe_contents(made)),
        ),
        None,
        settings.out,
    )
    print_metrics(report)
    if exit_code:
        reasons = '; '.join(report.failed_requirements) or f'exit code {exit_code}'
        raise RunError(f'failed: {reasons}; {page}')
    return f'{"passed" if settings.config.requirements else "complete"}; {page}'
