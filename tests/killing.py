"""A process that is killed in the middle of a run: a forked child, which SIGKILL ends without any handler."""

import os
import pickle
import signal
import tempfile
import traceback

_last_words = None  # in a child: writes down what it has to report


def killed(action, report):
    """Run an action in a child; return whether it was killed by `die`, and what ``report()`` said there at its end."""
    global _last_words
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:

            def _last_words():
                pickle.dump(report(), file)
                file.flush()

            try:
                action()
                _last_words()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed; its traceback is above"
        file.seek(0)
        return os.WIFSIGNALED(status), pickle.load(file)  # noqa: S301  # our own child wrote it


def die():
    """Kill this process, which must be a child of `killed`."""
    assert _last_words is not None, "only a child may die"
    _last_words()
    os.kill(os.getpid(), signal.SIGKILL)
