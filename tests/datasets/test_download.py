"""Download and cache against a server on localhost that misbehaves on request."""

import collections
import hashlib
import http.server
import io
import json
import logging
import socket
import threading
import time
import zipfile

import pooch
import pytest
from support import forking, raw_files

from oodgat_jax import datasets
from oodgat_jax.datasets import archive, download
from oodgat_jax.datasets.readers import musae
from oodgat_jax.types import InputError

CONTENT = bytes(range(256)) * 40
PATH = "/base/file.bin"


class Server(http.server.ThreadingHTTPServer):
    """Serves `answers`: path -> list of answers, the last one for ever.

    An answer is bytes, a status code, or a function that gets the handler.
    """

    def __init__(self):
        self.answers = {}
        self.requests = collections.Counter()
        self.release = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/base"

    def answer(self, path):
        answers = self.answers.get(path, [404])
        self.requests[path] += 1
        return answers[min(self.requests[path], len(answers)) - 1]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = self.server.answer(self.path)
        if isinstance(answer, int):
            self.send_error(answer)
        elif callable(answer):
            answer(self)
        else:
            self.send_body(answer, len(answer))

    def send_body(self, body, length):
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def cut_short(handler):
    handler.send_body(CONTENT[:5000], len(CONTENT))


def stall(handler):
    handler.send_body(CONTENT[:5000], len(CONTENT))
    handler.wfile.flush()
    handler.server.release.wait(10)


def without_length(handler):
    handler.send_body(CONTENT[:5000], None)


def redirect(to):
    def answer(handler):
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.end_headers()

    return answer


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OODGAT_DATA_DIR", raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def source(server):
    """A source of one file with a known digest."""
    return datasets.DATASETS["cora"]._replace(
        folder="folder",
        base_url=server.url,
        files={"file.bin": hashlib.sha256(CONTENT).hexdigest()},
    )


def left_in(cache):
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


# --- one file with a digest ----------------------------------------------------


@pytest.fixture
def logged():
    """What pooch would print besides its progress bar."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    pooch.get_logger().addHandler(handler)
    yield records
    pooch.get_logger().removeHandler(handler)


def test_a_file_is_downloaded_once_and_quietly(
    server, source, tmp_path, capsys, logged
):
    server.answers[PATH] = [CONTENT]
    for _ in range(2):
        folder = download.fetch(source, tmp_path)
    assert (folder / "file.bin").read_bytes() == CONTENT
    assert server.requests[PATH] == 1
    assert capsys.readouterr().out == ""
    assert logged == []
    assert left_in(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(
    ("answers", "message", "requests"),
    [
        ([CONTENT[:-1] + b"x"], "not the published file", 1),
        ([without_length], "not the published file", 1),
        ([cut_short], "cut short", 3),
        ([stall], "did not answer in 0.2 s", 3),
        ([500], "answers 500", 3),
        ([404], r"does not exist any more \(404\)", 1),
        ([403], "answers 403", 1),
    ],
)
def test_failures_are_named_and_leave_nothing(
    server, source, tmp_path, monkeypatch, answers, message, requests
):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.answers[PATH] = answers
    with pytest.raises(InputError, match=message) as caught:
        download.fetch(source, tmp_path)
    assert server.url + "/file.bin" in str(caught.value)
    assert server.requests[PATH] == requests
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("passing", [500, 503, 429, cut_short, stall])
def test_what_passes_is_tried_again(server, source, tmp_path, monkeypatch, passing):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.answers[PATH] = [passing, passing, CONTENT]
    folder = download.fetch(source, tmp_path)
    assert (folder / "file.bin").read_bytes() == CONTENT
    assert server.requests[PATH] == 3


def test_a_redirect_is_followed(server, source, tmp_path):
    server.answers[PATH] = [redirect("/elsewhere")]
    server.answers["/elsewhere"] = [CONTENT]
    folder = download.fetch(source, tmp_path)
    assert (folder / "file.bin").read_bytes() == CONTENT


def test_an_endless_redirect_is_named_and_leaves_nothing(server, source, tmp_path):
    server.answers[PATH] = [redirect(PATH)]
    with pytest.raises(InputError, match="answers 302") as caught:
        download.fetch(source, tmp_path)
    assert server.url + "/file.bin" in str(caught.value)
    assert left_in(tmp_path) == []


def test_an_unreachable_server(source, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as freed:
        port = freed.getsockname()[1]
    source = source._replace(base_url=f"http://127.0.0.1:{port}")
    with pytest.raises(InputError, match="cannot be reached"):
        download.fetch(source, tmp_path)


def test_a_damaged_cached_file_is_replaced(server, source, tmp_path):
    server.answers[PATH] = [CONTENT]
    path = download.fetch(source, tmp_path) / "file.bin"
    path.write_bytes(CONTENT[:100])
    download.fetch(source, tmp_path)
    assert path.read_bytes() == CONTENT


def test_an_interrupt_leaves_nothing(server, source, tmp_path, monkeypatch):
    def interrupted(self, url, output_file, pooch, check_only=False):
        with open(output_file, "wb") as stream:
            stream.write(CONTENT[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download.fetch(source, tmp_path)
    assert left_in(tmp_path) == []


def test_two_processes_end_with_one_good_copy(server, source, tmp_path):
    both = threading.Barrier(2, timeout=60)
    path = tmp_path / "folder" / "file.bin"
    seen_half_way = []

    def together(handler):
        both.wait()
        handler.send_body(CONTENT[:5000], len(CONTENT))
        time.sleep(0.2)
        seen_half_way.append(path.exists())
        both.wait()
        handler.wfile.write(CONTENT[5000:])

    server.answers[PATH] = [together]
    script = (
        "import pathlib; from oodgat_jax.datasets import DATASETS, download\n"
        f"row = DATASETS['cora']._replace(folder='folder', base_url={server.url!r},"
        f" files={source.files!r})\n"
        f"download.fetch(row, pathlib.Path({str(tmp_path)!r}))"
    )
    running = [forking.start("-c", script) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert server.requests[PATH] == 2
    assert left_in(tmp_path) == ["file.bin"]
    assert path.read_bytes() == CONTENT
    assert seen_half_way == [False, False]


def test_a_cache_that_cannot_be_made(source, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match=r"cannot be made .*OODGAT_CACHE_DIR"):
        download.fetch(source, tmp_path / "cache")


def test_the_environment_names_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OODGAT_CACHE_DIR", str(tmp_path))
    assert download.cache_dir() == tmp_path
    monkeypatch.delenv("OODGAT_CACHE_DIR")
    assert download.cache_dir().name == "oodgat-jax"


# --- whole data sets, and files without a digest -------------------------------


@pytest.fixture
def load(server, monkeypatch, tmp_path):
    """Load a tiny data set from the server under its real name."""
    monkeypatch.setenv("OODGAT_CACHE_DIR", str(tmp_path / "cache"))

    def load_row(row):
        monkeypatch.setitem(
            datasets.DATASETS, row.name, row._replace(base_url=server.url)
        )
        return datasets.load(row.name)

    return load_row


def test_planetoid_by_download(server, load, tmp_path):
    row = raw_files.write_planetoid(tmp_path / "made")
    for name in row.files:
        data = (tmp_path / "made" / "planetoid" / name).read_bytes()
        server.answers[f"/base/{name}"] = [data]
    assert load(row).num_nodes == 9
    assert len(server.requests) == 6
    assert left_in(tmp_path / "cache") == sorted(row.files)


@pytest.mark.parametrize(
    "wrong",
    [
        json.dumps(raw_files.wiki_cs_content())[:-20].encode(),
        json.dumps(raw_files.wiki_cs_content() | {"links": [[1], [], []]}).encode(),
    ],
    ids=["truncated", "other counts"],
)
def test_a_wrong_file_without_digest_is_removed(server, load, tmp_path, wrong):
    good = json.dumps(raw_files.wiki_cs_content()).encode()
    server.answers["/base/data.json"] = [wrong, good]
    with pytest.raises(
        InputError, match="download of wiki-cs is wrong and was removed"
    ):
        load(raw_files.wiki_cs_row())
    assert left_in(tmp_path / "cache") == []
    assert load(raw_files.wiki_cs_row()).num_nodes == 3


# --- archives ------------------------------------------------------------------

ZIP = "/base/facebook_large.zip"


def packed(files, folder="facebook_large/"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packing:
        for name, text in files.items():
            packing.writestr(folder + name, text)
    return stream.getvalue()


def test_members_are_unpacked_and_nothing_else(server, load, tmp_path):
    extra = {"README.txt": "hello", "../../escaped.txt": "out"}
    server.answers[ZIP] = [packed(raw_files.FACEBOOK | extra)]
    for _ in range(2):
        assert load(raw_files.facebook_row()).num_nodes == 4
    assert server.requests[ZIP] == 1
    expected = sorted([*raw_files.FACEBOOK, "facebook_large.zip"])
    assert left_in(tmp_path) == expected


def test_lastfm_by_download(server, load, monkeypatch):
    monkeypatch.setattr(musae, "LASTFM_FEATURES", 40)
    monkeypatch.setattr(musae, "LASTFM_DIMENSIONS", 4)
    data = packed(raw_files.lastfm_files(), "lasftm_asia/")
    server.answers["/base/lastfm_asia.zip"] = [data]
    assert load(raw_files.lastfm_row()).features.shape == (40, 4)


def escaping():
    return packed(raw_files.FACEBOOK, folder="../")


def incomplete():
    return packed(dict(list(raw_files.FACEBOOK.items())[:2]))


def twice():
    doubled = {f"copy/{name}": text for name, text in raw_files.FACEBOOK.items()}
    return packed(raw_files.FACEBOOK | doubled)


def damaged():
    data = bytearray(packed(raw_files.FACEBOOK))
    data[80] ^= 0xFF
    return bytes(data)


def bomb():
    return packed(raw_files.FACEBOOK | {"musae_facebook_edges.csv": "0" * 20_000})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (escaping, "leaves its folder"),
        (incomplete, "holds 0 files musae_facebook_features.json"),
        (twice, "holds 2 files musae_facebook_edges.csv"),
        (damaged, "cannot be read"),
        (bomb, "to more than 10000 bytes"),
        (lambda: packed(raw_files.FACEBOOK)[:-30], "cannot be read"),
        (lambda: b"<html>moved</html>", "cannot be read"),
    ],
)
def test_bad_archives_are_refused_and_removed(
    server, load, tmp_path, monkeypatch, make, message
):
    monkeypatch.setattr(archive, "MAX_MEMBER_BYTES", 10_000)
    server.answers[ZIP] = [make()]
    with pytest.raises(InputError, match=message) as caught:
        load(raw_files.facebook_row())
    assert "facebook_large.zip" in str(caught.value)
    assert "facebook_large.zip" not in left_in(tmp_path)
    assert set(left_in(tmp_path)) <= set(raw_files.FACEBOOK)


def test_an_archive_with_another_graph_is_removed(server, load, tmp_path):
    server.answers[ZIP] = [packed(raw_files.FACEBOOK)]
    with pytest.raises(InputError, match="facebook-pages is wrong and was removed"):
        load(raw_files.facebook_row()._replace(edges=5))
    assert left_in(tmp_path) == []
