"""Download raw files into the cache: checked, atomically, with clear errors.

pooch writes a download to a temporary file next to its target, compares digests and
only then renames it. A name in the cache is therefore a complete file, also when the
download is interrupted or two processes fetch the same file at once.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pooch
import requests

from oodgat_jax.datasets import archive
from oodgat_jax.datasets.source import Source
from oodgat_jax.types import InputError

CACHE_DIR_VARIABLE = "OODGAT_CACHE_DIR"
TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 3
PAUSE = 1.0  # seconds before the second attempt, doubled for each one after it
_PASSING = (requests.ConnectionError, requests.Timeout)
_CUT_SHORT = requests.exceptions.ChunkedEncodingError


def cache_dir() -> Path:
    """Returns where downloads are kept: OODGAT_CACHE_DIR, else the user's cache."""
    return Path(os.environ.get(CACHE_DIR_VARIABLE) or pooch.os_cache("oodgat-jax"))


def check_digest(path: Path, digest: str | None) -> None:
    """Refuses a file whose content is not the published one."""
    if digest is None:
        return
    try:
        found = pooch.file_hash(str(path), alg="sha256")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    if found != digest:
        raise InputError(
            f"{path} is not the published file: its SHA-256 is {found}, not {digest}; "
            f"replace it."
        )


def fetch(source: Source, cache: Path) -> Path:
    """Returns the folder of the raw files of `source`, downloading what is missing."""
    folder = cache / source.folder
    _make_folder(folder)
    if source.archive is None:
        for name, digest in source.files.items():
            _download(f"{source.base_url}/{name}", folder / name, digest)
    elif not all((folder / name).is_file() for name in source.files):
        path = folder / source.archive
        _download(f"{source.base_url}/{source.archive}", path, None)
        _extract(path, source)
    return folder


def discard(source: Source, cache: Path) -> bool:
    """Removes the files of `source` that have no digest; returns True if any."""
    names = [name for name, digest in source.files.items() if digest is None]
    if source.archive is not None:
        names.append(source.archive)
    for name in names:
        (cache / source.folder / name).unlink(missing_ok=True)
    return bool(names)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The cache folder {folder} cannot be made ({error.strerror}); set "
            f"{CACHE_DIR_VARIABLE} to a folder you can write to."
        ) from error


def _extract(path: Path, source: Source) -> None:
    """Unpacks the archive; one that cannot be unpacked does not stay in the cache."""
    try:
        archive.extract(path, tuple(source.files), path.parent)
    except InputError:
        path.unlink(missing_ok=True)
        raise


def _download(url: str, path: Path, digest: str | None) -> None:
    """Fetches one file unless a good copy is there; retries passing faults."""
    for attempt in range(ATTEMPTS):
        try:
            return _retrieve(url, path, digest)
        except requests.RequestException as error:
            if attempt == ATTEMPTS - 1 or not _may_pass(error):
                raise InputError(_explain(error, url)) from error
        except ValueError as error:
            raise InputError(
                f"The download of {url} is not the published file (its SHA-256 is not "
                f"{digest}) and was not kept; try again later."
            ) from error
        except OSError as error:
            raise InputError(
                f"{path} cannot be written ({error.strerror}); set "
                f"{CACHE_DIR_VARIABLE} to a folder you can write to."
            ) from error
        time.sleep(PAUSE * 2**attempt)


def _retrieve(url: str, path: Path, digest: str | None) -> None:
    downloader = pooch.HTTPDownloader(
        progressbar=True, chunk_size=1 << 16, timeout=TIMEOUT
    )
    with _quiet_log():
        pooch.retrieve(
            url,
            known_hash=digest,
            fname=path.name,
            path=path.parent,
            downloader=downloader,
        )


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """Silences what pooch prints; only its progress bar is wanted."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _status(error: requests.RequestException) -> int | None:
    return None if error.response is None else error.response.status_code


def _may_pass(error: requests.RequestException) -> bool:
    """Returns True for a fault that another attempt may not meet."""
    status = _status(error)
    if status is not None:
        return status >= 500 or status == 429
    return isinstance(error, (*_PASSING, _CUT_SHORT))


def _explain(error: requests.RequestException, url: str) -> str:
    """Returns one sentence on a download that failed for good."""
    advice = "or put the raw files into a folder and name it in OODGAT_DATA_DIR"
    status = _status(error)
    if status == 404:
        return f"{url} does not exist any more (404); get the file elsewhere, {advice}."
    if status is not None:
        return f"The server answers {status} for {url}; try again later, {advice}."
    if isinstance(error, _CUT_SHORT):
        return f"The download of {url} was cut short; try again, {advice}."
    if isinstance(error, requests.Timeout) or "timed out" in str(error):
        return f"{url} did not answer in {TIMEOUT:g} s; try again later, {advice}."
    return f"{url} cannot be reached; check the connection, {advice}."
