"""Two writers of one file: one of them is last, and what it wrote is whole."""

from counterpoise.persist import write_atomically


def test_a_writer_that_comes_in_between_spoils_nothing(tmp_path):
    path = tmp_path / "greeting.txt"

    def slowly():
        yield b"good "
        write_atomically(path, [b"hello"])
        assert path.read_bytes() == b"hello"
        yield b"day"

    write_atomically(path, slowly())
    assert path.read_bytes() == b"good day"
    assert list(tmp_path.iterdir()) == [path]
