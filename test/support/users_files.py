"""Files of a user, of every kind that a careless clean-up would lose, and their contents."""

import os
import subprocess
from pathlib import Path

from osmabench_ros.base.files import DRAFT_PREFIX, PREVIOUS


def fill(folder, elsewhere):
    """Put a user's files into a folder; links lead to others that are put elsewhere."""
    (elsewhere / 'photos').mkdir(parents=True, exist_ok=True)
    for name in ('photos/one.jpg', 'report.json', 'diary'):
        (elsewhere / name).write_text(f'my {name}')
    texts = {
        '.env': 'SECRET=1',
        'notes.txt': 'dear',
        'src/.keep': '',
        'src/deep/er/code.py': 'pass',
        f'{DRAFT_PREFIX}x/half': 'mine',
        '.report.json.abc': '{}',
        '.map.1.partial/map.json': '{}',
        'my.npy': 'array',
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / 'notes.txt').chmod(0o600)
    (folder / 'src').chmod(0o750)
    (folder / 'photos').symlink_to(elsewhere / 'photos')
    (folder / 'diary').symlink_to(elsewhere / 'diary')
    (folder / 'nowhere').symlink_to(elsewhere / 'missing')
    (folder / 'empty').mkdir()
    os.link(elsewhere / 'report.json', folder / 'hard_link')
    subprocess.run(['git', 'init', '-q', str(folder / 'repository')], check=True)
    (folder / 'repository' / '.git' / 'precious').write_text('commit')


def snapshot(*folders):
    """Return mode and content of everything in some folders, the folders too; through no link."""
    found = {}
    for folder in folders:
        for path in (folder, *sorted(folder.rglob('*'))):
            content = None
            if path.is_symlink():
                content = os.readlink(path)
            elif path.is_file():
                content = path.read_bytes()
            found[path] = (path.lstat().st_mode, content)
    return found


def lost(before, *folders):
    """Return the files that are neither unchanged nor moved aside; later files do not count."""
    after = snapshot(*folders)
    kept = {(_before_its_move(path), now) for path, now in after.items()}
    return [path for path, was in before.items() if (path, was) not in kept]


def _before_its_move(path):
    """Return the path that a file in ``previous/<time>`` had."""
    if PREVIOUS not in path.parts[:-1]:
        return path
    number = path.parts.index(PREVIOUS)
    return Path(*path.parts[:number], *path.parts[number + 2 :])
