"""The only source of randomness: every random number is a function of (seed, round, purpose).

The generator is Philox4x32-10 (Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, 2011), a keyed
bijection of a 128-bit counter. The key comes from the seed. The counter holds the position in the stream (64 bits),
the round (32 bits) and a tag (32 bits) that tells the streams of one round apart. So the numbers of any round can be
drawn again on their own, in any order, on any worker, and no state of a generator has to be stored.

The generator and the transformation of its 32-bit words to normals are implemented here, because NumPy does not
promise that its distributions stay the same from release to release. Normals are computed in float32 by polynomials,
because the ``log`` and ``sin`` of libraries differ between processors, and are used in float64.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.sampling.jit import kernel

BLOCK = 1024  # 32-bit words are generated in blocks of this many
_LANES = BLOCK // 4
_HALF = BLOCK // 2

PLAN, DIRECTIONS = 1, 2  # the purpose of a stream, in the top byte of its tag
TAG_LIMIT = 1 << 24  # the number of streams of one purpose that a round can have

u32, u64, f32 = np.uint32, np.uint64, np.float32


def seed_of(seed: object) -> int:
    """Check a seed, or draw one from the operating system if it is None.

    Arguments
    ---------
    seed: a whole number from 0 to 2**1000 - 1, or None.

    Returns
    -------
    The seed as an ``int``.

    >>> seed_of(7)
    7
    """
    if seed is None:
        return secrets.randbits(63)
    number = check.whole(seed)
    if number is None:
        raise ValueError(
            f"seed must be a whole number of at least 0, or None for a random one, not {check.shown(seed)}"
        )
    if number < 0:
        raise ValueError(f"seed must be a whole number of at least 0, not {max(number, -(10**18))}")
    if number >= 1 << 1000:
        raise ValueError(f"seed must be below 2**1000, but it has {number.bit_length()} bits: pass a smaller number")
    return number


def key_of(seed: int) -> int:
    """Return the key of a seed: a hash of 63 bits, so that it fits an int64.

    The hash makes the streams of similar seeds, such as 1, 2 and 3, unrelated.
    """
    return int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "little") >> 1


@intrinsic
def _bits(typing_context: Any, x: Any) -> Any:
    """Reinterpret the bits of a float32 as a uint32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.uint32(types.float32), generate


@intrinsic
def _float(typing_context: Any, x: Any) -> Any:
    """Reinterpret the bits of a uint32 as a float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


_MASK, _SHIFT = u64(0xFFFFFFFF), u64(32)
_M0, _M1 = u64(0xD2511F53), u64(0xCD9E8D57)
_W0, _W1 = u64(0x9E3779B9), u64(0xBB67AE85)


@kernel
def words(out: Any, block: int, round_: int, tag: int, key: int) -> None:
    """Fill ``out`` (1024 uint32) with block number ``block`` of the words of the stream (key, round, tag)."""
    first = u64(block) * u64(_LANES)
    round_word, tag_word = u64(round_) & _MASK, u64(tag) & _MASK
    key0, key1 = u64(key) & _MASK, u64(key) >> _SHIFT
    for lane in range(_LANES):
        position = first + u64(lane)
        a, b, c, d = position & _MASK, position >> _SHIFT, round_word, tag_word
        k0, k1 = key0, key1
        for _ in range(10):
            p, q = _M0 * a, _M1 * c
            a, b, c, d = (q >> _SHIFT) ^ b ^ k0, q & _MASK, (p >> _SHIFT) ^ d ^ k1, p & _MASK
            k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
        out[lane] = u32(a)
        out[_LANES + lane] = u32(b)
        out[2 * _LANES + lane] = u32(c)
        out[3 * _LANES + lane] = u32(d)


# Polynomials of the Cephes library (logf, sinf, cosf): errors below two units in the last place of float32.
_L0, _L1, _L2 = f32(7.0376836292e-2), f32(-1.1514610310e-1), f32(1.1676998740e-1)
_L3, _L4, _L5 = f32(-1.2420140846e-1), f32(1.4249322787e-1), f32(-1.6668057665e-1)
_L6, _L7, _L8 = f32(2.0000714765e-1), f32(-2.4999993993e-1), f32(3.3333331174e-1)
_LN2_LOW, _LN2_HIGH = f32(-2.12194440e-4), f32(0.693359375)
_S0, _S1, _S2 = f32(-1.9515295891e-4), f32(8.3321608736e-3), f32(-1.6666654611e-1)
_C0, _C1, _C2 = f32(2.443315711809948e-5), f32(-1.388731625493765e-3), f32(4.166664568298827e-2)
_ONE, _HALF_F, _TINY = f32(1), f32(0.5), f32(1e-9)
_SQRT_HALF, _SQRT_TWO, _QUARTER_TURN = f32(np.sqrt(0.5)), f32(np.sqrt(2)), f32(np.pi / 2)
_U32, _U30 = f32(2.0**-32), f32(2.0**-30)
_MANTISSA, _EXPONENT_ONE, _SIGN, _LOW30 = u32(0x7FFFFF), u32(0x3F800000), u32(0x80000000), u32(0x3FFFFFFF)
_23, _1 = u32(23), u32(1)


@kernel
def normals_of(z: Any, w: Any) -> None:
    """Transform 1024 words to 1024 standard normals in float32 by the Box-Muller method; |z| <= 6.8."""
    for i in range(_HALF):
        u = (f32(w[i]) + _HALF_F) * _U32  # in (0, 1]
        bits = _bits(u)
        m = _float((bits & _MANTISSA) | _EXPONENT_ONE)  # u = m 2^e, m in [1, 2)
        e = f32(np.int32(bits >> _23) - np.int32(127))
        large = m > _SQRT_TWO
        m = m * _HALF_F if large else m
        e = e + _ONE if large else e
        x = m - _ONE
        y = _L0
        y = y * x + _L1
        y = y * x + _L2
        y = y * x + _L3
        y = y * x + _L4
        y = y * x + _L5
        y = y * x + _L6
        y = y * x + _L7
        y = y * x + _L8
        xx = x * x
        y = y * x * xx + _LN2_LOW * e - _HALF_F * xx
        log = (x + y) + _LN2_HIGH * e
        minus = -log
        radius = np.sqrt(minus if minus > f32(0) else f32(0))  # the missing factor sqrt(2) cancels the 1/sqrt(2) below
        v = w[_HALF + i]
        angle = (f32(v & _LOW30) * _U30 - _HALF_F) * _QUARTER_TURN  # in [-pi/4, pi/4]
        t = angle * angle
        s = ((_S0 * t + _S1) * t + _S2) * t * angle + angle
        c = ((_C0 * t + _C1) * t + _C2) * t * t - _HALF_F * t + _ONE
        # cos and sin of angle + pi/4 are (c - s)/sqrt 2 and (c + s)/sqrt 2, which are in the first quadrant; the
        # two top bits of the word choose the quadrant.
        x, y = radius * (c - s), radius * (c + s)
        x = x if x > _TINY else _TINY  # never 0: a direction may have a single entry, by which it is divided
        y = y if y > _TINY else _TINY
        z[i] = _float(_bits(x) ^ (v & _SIGN))
        z[_HALF + i] = _float(_bits(y) ^ ((v << _1) & _SIGN))


@kernel
def fill_normals(out: Any, round_: int, tag: int, key: int) -> None:
    """Fill a one-dimensional array with the first standard normals of the stream (key, round, tag)."""
    w = np.empty(BLOCK, np.uint32)
    z = np.empty(BLOCK, np.float32)
    for start in range(0, out.size, BLOCK):
        words(w, start // BLOCK, round_, tag, key)
        normals_of(z, w)
        for i in range(min(BLOCK, out.size - start)):
            out[start + i] = z[i]


@kernel
def _fill_uniforms(out: Any, round_: int, tag: int, key: int, skip: int) -> None:
    """Fill ``out`` with uniform numbers of 53 bits in [0, 1), after the first ``skip`` numbers of the stream."""
    w = np.empty(BLOCK, np.uint32)
    at = -1
    for i in range(out.size):
        place = 2 * (skip + i)
        if place // BLOCK != at:
            at = place // BLOCK
            words(w, at, round_, tag, key)
        high, low = u64(w[place % BLOCK]), u64(w[place % BLOCK + 1])
        out[i] = np.float64((high << u64(21)) ^ (low >> u64(11))) * 2.0**-53


class Stream:
    """The random numbers that a method's ``plan`` draws in one round.

    Each method of this class continues the stream where the previous call stopped.

    Arguments
    ---------
    seed: the seed of the run.
    round: the number of the round.
    purpose: tells the streams of one round apart; ``PLAN`` by default.
    key: the key of the seed, if it is known already; otherwise it is computed by `key_of`.

    >>> Stream(seed=3, round=0).integers(10, 4).tolist() == Stream(seed=3, round=0).integers(10, 4).tolist()
    True
    """

    def __init__(self, seed: int, round: int, purpose: int = PLAN, *, key: int | None = None) -> None:
        self.key = self._key = key_of(seed) if key is None else key
        self._round = round
        self._tag = purpose << 24
        self._drawn = 0
        self._normal_streams = 0

    def uniform(self, size: int = 1) -> NDArray[np.float64]:
        """Draw ``size`` numbers (1 by default), uniform in [0, 1)."""
        out = np.empty(size)
        _fill_uniforms(out, self._round, self._tag, self._key, self._drawn)
        self._drawn += size
        return out

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return bool(self.uniform()[0] < probability)

    def integers(self, high: int, size: int = 1) -> NDArray[np.int64]:
        """Draw ``size`` whole numbers (1 by default), uniform in 0 .. high - 1, with replacement."""
        if high < 1:
            raise ValueError(f"cannot draw a whole number below {high}: the bound must be at least 1")
        return np.minimum((self.uniform(size) * high).astype(np.int64), high - 1)

    def subset(self, n: int, size: int) -> NDArray[np.int64]:
        """Draw ``size`` different whole numbers out of 0 .. n - 1, in random order."""
        if not 1 <= size <= n:
            raise ValueError(f"cannot draw {size} different components out of n = {n}: take a batch of at most {n}")
        if size == 1:
            return np.array([min(int(self.uniform()[0] * n), n - 1)])
        if 4 * size < n:  # Floyd's algorithm and a random order afterwards: the work does not grow with n
            chosen: list[int] = []
            seen: set[int] = set()
            for top, u in zip(range(n - size, n), self.uniform(size).tolist(), strict=True):
                pick = min(int(u * (top + 1)), top)
                pick = top if pick in seen else pick
                seen.add(pick)
                chosen.append(pick)
            return np.asarray(chosen, dtype=np.int64)[self.subset(size, size)]
        order = np.argsort(self.uniform(n), kind="stable")
        return order[:size].astype(np.int64)

    def normal(self, size: int) -> NDArray[np.float64]:
        """Draw ``size`` standard normals; each call uses a stream of its own."""
        self._normal_streams += 1
        out = np.empty(size)
        fill_normals(out, self._round, self._tag + self._normal_streams, self._key)
        return out
