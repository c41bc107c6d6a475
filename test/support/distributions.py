"""Distributions of somebody else, as if pip had installed them."""

HEADER = 'Metadata-Version: 2.1\nName: somebodys-package\nVersion: 1.0'


def install_distribution(folder, monkeypatch, points, **modules):
    """Put modules, and entry points by group, each 'name = module:object', on the path."""
    for name, code in modules.items():
        (folder / f'{name}.py').write_text(code)
    metadata = folder / 'somebodys_package-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(HEADER)
    groups = [f'[{group}]\n' + '\n'.join(lines) for group, lines in points.items()]
    (metadata / 'entry_points.txt').write_text('\n'.join(groups))
    monkeypatch.syspath_prepend(str(folder))
