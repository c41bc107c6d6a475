"""What a measurement beside a running stack ends with: figures, page, verdict and path."""

from __future__ import annotations

from osmabench_ros.base.files import read_json
from osmabench_ros.bringup.on_robot import BAG_FOLDER, MAP_FOLDER, OnRobot
from osmabench_ros.errors import RunError
from osmabench_ros.maps.storage import read_map
from osmabench_ros.maps.summary import contents_of
from osmabench_ros.maps.topics.kinds import SEMANTIC_MAP as MAP_TYPE
from osmabench_ros.reports.bag_page import write_bag_page
from osmabench_ros.reports.figures import print_figures
from osmabench_ros.ros.topics import SEMANTIC_MAP
from osmabench_ros.runs.bag_report import BagReport
from osmabench_ros.runs.evaluation import REPORT
from osmabench_ros.runs.report_model import RunReport, map_remarks, partial_fault


def conclude(settings: OnRobot, exit_code: int) -> str:
    """Print the figures, write the page, and return the verdict with the path.

    Raises RunError, saying where the rest is, if the run failed or requirements do not hold.
    """
    file = settings.out / REPORT
    if settings.ground_truth is None or not file.is_file():
        if exit_code:
            raise RunError(f'the run ended with exit code {exit_code}; see the messages above')
        made = read_map(settings.out / MAP_FOLDER)
        told = '; '.join((contents_of(made), *map_remarks(made.header)))
        told = f'recorded, not scored: {told}; {settings.out / MAP_FOLDER}'
        if not (made.header.complete or settings.settling.allow_partial):
            raise RunError(f'{told}. {partial_fault(MAP_FOLDER)}')
        return told
    report = RunReport.model_validate(read_json(file))
    made = read_map(settings.out / MAP_FOLDER)
    page = write_bag_page(
        BagReport(
            **{name: value for name, value in report if name not in ('schema_name', 'remarks')},
            bag=str(settings.out / BAG_FOLDER) if settings.record else 'not recorded',
            map_topic=f'/{SEMANTIC_MAP}',
            map_type=MAP_TYPE,
            frame_id=made.header.frame_id,
            stamp_ns=made.header.stamp_ns,
            reference=str(settings.ground_truth),
            remarks=(*report.remarks, contents_of(made)),
        ),
        None,
        settings.out,
    )
    print_figures(report)
    if exit_code:
        reasons = '; '.join(report.failed_requirements) or f'exit code {exit_code}'
        raise RunError(f'failed: {reasons}; {page}')
    return f'passed; {page}'
