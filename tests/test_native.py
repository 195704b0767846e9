"""The native kernel called directly: every instruction set equals the NumPy kernels, and a wrong call raises."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise.description import Joint, Link, Robot, load_robot
from jointwise.model.rigid import numpy_kernels, regressor_structure
from jointwise.model.rigid.chain import Chain, make_chain
from jointwise.spatial import Array
from kernels import INSTRUCTION_SETS, assert_agree, engine, native, needs_native
from robots import Case, cases, law, quarter_turned_cases, random_states

pytestmark = [needs_native, pytest.mark.compat]

ROBOT = load_robot("ur5e")
SAMPLES = 11
REFUSALS = (ValueError, TypeError, BufferError)
KERNELS = ("inverse_dynamics", "regressor", "kinematics", "mass_matrix", "forward_dynamics", "energy_regressors")


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    native.use_instruction_set(request.param)
    yield request.param
    native.use_instruction_set(INSTRUCTION_SETS[-1])


def every_place(dof: int) -> bytes:
    """Return places for all entries of the upper triangle of the regressor, structure or not."""
    upper = np.kron(np.triu(np.ones((dof, dof))), np.ones(10)).astype(bool).ravel()
    return np.where(upper, np.cumsum(upper) - 1, -1).astype(np.int32).tobytes()


def results(kernels: object, chain: Chain, q: Array, qd: Array, qdd: Array) -> dict[str, Array]:
    """Return the outputs of all kernels, each (samples, columns)."""
    n, samples = chain.dof, len(q)
    sizes = {"torque": n, "frames": 12 * n, "mass": n * n, "acceleration": n, "kinetic": 10 * n, "potential": 10 * n}
    out = {name: np.full((samples, size), np.nan) for name, size in sizes.items()}
    out["regressor"] = np.full((samples, 5 * n * (n + 1)), np.nan)
    finite = [
        kernels.inverse_dynamics(chain, q, qd, qdd, out["torque"]),
        kernels.kinematics(chain, q, None, None, out["frames"]),
        kernels.mass_matrix(chain, q, None, None, out["mass"]),
        kernels.forward_dynamics(chain, q, qd, qdd, out["acceleration"]),
        kernels.energy_regressors(chain, q, qd, out["kinetic"], out["potential"]),
        kernels.regressor(chain, q, qd, qdd, every_place(n), out["regressor"]),
    ]
    assert finite == [True] * 6
    return out


@law(80)
@given(st.one_of(cases(samples=37), quarter_turned_cases(samples=37)))
def test_every_instruction_set_agrees_with_numpy(case: Case) -> None:
    chain = make_chain(case.robot, case.gravity, case.payload, rotor_inertias=case.rotors)
    expected = results(numpy_kernels, chain, case.q, case.qd, case.qdd)
    for name in INSTRUCTION_SETS:
        with engine(name):
            ours = results(native, chain, case.q, case.qd, case.qdd)
        for quantity, theirs in expected.items():
            assert_agree(ours[quantity], theirs)


@pytest.mark.parametrize("samples", [*range(1, 41), 63, 64, 65, 95, 96, 97, 1000])
def test_no_sample_is_left_out_whatever_the_lanes_and_tiles(instruction_set: str, samples: int) -> None:
    chain = make_chain(load_robot("panda"))
    q, qd, qdd = random_states(np.random.default_rng(samples), load_robot("panda"), samples)
    expected = results(numpy_kernels, chain, q, qd, qdd)
    for quantity, ours in results(native, chain, q, qd, qdd).items():
        assert_agree(ours, expected[quantity])


@pytest.mark.parametrize("dof", [1, 2, 11, 32, 64])
def test_long_chains_fit(instruction_set: str, dof: int) -> None:
    rng = np.random.default_rng(dof)
    joints = [Joint(f"j{k}", "revolute", np.eye(3), rng.uniform(-0.1, 0.1, 3)) for k in range(dof)]
    links = [Link.from_center(f"l{k}", 1.0, rng.uniform(-0.1, 0.1, 3), np.eye(3)) for k in range(dof)]
    chain = make_chain(Robot("long", tuple(joints), tuple(links)))
    q, qd, qdd = rng.uniform(-0.5, 0.5, (3, 5, dof))
    expected = results(numpy_kernels, chain, q, qd, qdd)
    for quantity, ours in results(native, chain, q, qd, qdd).items():
        assert_agree(ours, expected[quantity])


# -- sine and cosine -------------------------------------------------------------------------------------------------


def native_sine_cosine(angles: Array) -> tuple[Array, Array]:
    """Return sine and cosine as the kernel computes them: the frame of one joint about z."""
    one = Robot("turn", (Joint("j", "revolute", np.eye(3), np.zeros(3)),), (Link("l", np.zeros(10)),))
    frames = np.empty((len(angles), 12))
    assert native.kinematics(make_chain(one), angles[:, None], None, None, frames)
    return frames[:, 3], frames[:, 0]


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 4.0, 1e3, 0.99e5, 1.01e5, 1e7, 1e15, 1e300])
def test_sine_and_cosine_are_right_to_two_units_in_the_last_place(instruction_set: str, size: float) -> None:
    angles = np.random.default_rng(0).uniform(-size, size, 4001)
    sine, cosine = native_sine_cosine(angles)
    for ours, theirs in ((sine, np.sin(angles)), (cosine, np.cos(angles))):
        assert (np.abs(ours - theirs) <= 2.0 * np.spacing(np.abs(theirs))).all()


def test_sine_and_cosine_are_right_beside_every_quarter_turn(instruction_set: str) -> None:
    """Close to a zero of the sine or cosine the argument's reduction must keep all digits."""
    exact = np.arange(-60000, 60001, 7) * (np.pi / 2)
    for angles in (exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)):
        sine, cosine = native_sine_cosine(angles)
        assert (np.abs(sine - np.sin(angles)) <= 2.0 * np.spacing(np.abs(np.sin(angles)))).all()
        assert (np.abs(cosine - np.cos(angles)) <= 2.0 * np.spacing(np.abs(np.cos(angles)))).all()


def test_a_huge_angle_does_not_disturb_its_neighbours(instruction_set: str) -> None:
    angles = np.random.default_rng(1).uniform(-3.0, 3.0, 64)
    angles[[3, 17, 40]] = (1e7, -3e8, 2e5)
    sine, cosine = native_sine_cosine(angles)
    assert_agree(sine, np.sin(angles), tolerance=5e-16)
    assert_agree(cosine, np.cos(angles), tolerance=5e-16)


# -- wrong calls -----------------------------------------------------------------------------------------------------


def arguments(kernel: str) -> list[object]:
    """Return a right call of a kernel."""
    chain = make_chain(ROBOT)
    q, qd, qdd = random_states(np.random.default_rng(0), ROBOT, SAMPLES)
    structure = regressor_structure(ROBOT)
    return {
        "inverse_dynamics": [chain, q, qd, qdd, np.zeros((SAMPLES, 6))],
        "regressor": [chain, q, qd, qdd, structure.places, np.zeros((SAMPLES, len(structure.rows)))],
        "kinematics": [chain, q, None, None, np.zeros((SAMPLES, 72))],
        "mass_matrix": [chain, q, None, None, np.zeros((SAMPLES, 36))],
        "forward_dynamics": [chain, q, qd, qdd, np.zeros((SAMPLES, 6))],
        "energy_regressors": [chain, q, qd, np.zeros((SAMPLES, 60)), np.zeros((SAMPLES, 60))],
    }[kernel]


def wrong_arrays(right: Array) -> list[object]:
    misaligned = np.zeros(right.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(right.shape)
    records = np.zeros(right.shape, dtype=np.dtype([("tag", "i4"), ("value", "f8")]))["value"]
    return [
        right.astype(np.float32),
        right.astype(np.int64),
        right.astype(">f8"),
        right.astype(np.complex128),
        right.astype(object),
        right[:, :-1],
        right[:-1],
        right.ravel(),
        right[None],
        misaligned,
        records,
        right.tolist(),
        right.tobytes(),
        3.0,
        "array",
        object(),
    ]


WRONG_CHAINS = {
    "none": None,
    "empty": (),
    "list": list(make_chain(ROBOT)),
    "five": tuple(make_chain(ROBOT))[:5],
    "seven": (*make_chain(ROBOT), None),
    "no joint": (b"", *tuple(make_chain(ROBOT))[1:]),
    "too few kinds": (b"\1" * 5, *tuple(make_chain(ROBOT))[1:]),
    "too many kinds": (b"\1" * 7, *tuple(make_chain(ROBOT))[1:]),
    "text kinds": ("revolute", *tuple(make_chain(ROBOT))[1:]),
}


def test_the_right_calls_are_right() -> None:
    for kernel in KERNELS:
        assert getattr(native, kernel)(*arguments(kernel)) is True


@pytest.mark.parametrize("kernel", KERNELS)
def test_wrong_arrays_are_refused(kernel: str) -> None:
    call, right = getattr(native, kernel), arguments(kernel)
    for place in range(1, len(right)):
        if not isinstance(right[place], np.ndarray):
            continue
        for wrong in wrong_arrays(right[place]):
            with pytest.raises(REFUSALS):
                call(*right[:place], wrong, *right[place + 1 :])


@pytest.mark.parametrize("kernel", KERNELS)
def test_outputs_must_be_writable_and_inputs_need_not(kernel: str) -> None:
    call, right = getattr(native, kernel), arguments(kernel)
    frozen = right[1].copy()
    frozen.setflags(write=False)
    assert call(right[0], frozen, *right[2:]) is True
    out = right[-1].copy()
    out.setflags(write=False)
    with pytest.raises(REFUSALS):
        call(*right[:-1], out)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chain", WRONG_CHAINS.values(), ids=WRONG_CHAINS)
def test_wrong_chains_are_refused(kernel: str, chain: object) -> None:
    with pytest.raises(REFUSALS):
        getattr(native, kernel)(chain, *arguments(kernel)[1:])


@pytest.mark.parametrize("kernel", KERNELS)
def test_wrong_parts_of_the_chain_are_refused(kernel: str) -> None:
    right = arguments(kernel)
    chain = tuple(right[0])
    for place in range(1, 6):
        part = chain[place]
        for wrong in (None, 1.0, part.astype(np.float32), part.astype(">f8"), part.ravel()[:-1], part.tolist()):
            with pytest.raises(REFUSALS):
                getattr(native, kernel)((*chain[:place], wrong, *chain[place + 1 :]), *right[1:])
        strided = np.repeat(part.ravel(), 2)[::2]
        with pytest.raises(REFUSALS):
            getattr(native, kernel)((*chain[:place], strided, *chain[place + 1 :]), *right[1:])


@pytest.mark.parametrize("kernel", KERNELS)
def test_missing_none_and_surplus_arguments_are_refused(kernel: str) -> None:
    call, right = getattr(native, kernel), arguments(kernel)
    for count in range(len(right)):
        with pytest.raises(TypeError):
            call(*right[:count])
    for wrong in ((*right, None), [None] * len(right), [right[0], None, *right[2:]], [*right[:-1], None]):
        with pytest.raises(TypeError):
            call(*wrong)
    with pytest.raises(TypeError):
        call(*right, out=None)


@pytest.mark.parametrize(
    "places",
    [None, "text", b"", b"\0" * 7, np.zeros(10, dtype=np.int32).tobytes(), np.full(360, 10**9, np.int32).tobytes()],
    ids=["none", "text", "empty", "odd", "few", "too large"],
)
def test_wrong_places_are_refused(places: object) -> None:
    right = arguments("regressor")
    with pytest.raises(REFUSALS):
        native.regressor(*right[:4], places, right[5])


def test_places_below_zero_are_zeros() -> None:
    """An entry that is nowhere is not written, whatever negative number says so."""
    right = arguments("regressor")
    nothing = np.full(360, -(2**31), dtype=np.int32)
    assert native.regressor(*right[:4], nothing.tobytes(), np.empty((SAMPLES, 0))) is True
    nothing[9 + 10 * 35] = 0
    one = np.empty((SAMPLES, 1))
    assert native.regressor(*right[:4], nothing.tobytes(), one) is True
    assert np.isfinite(one).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_non_finite_input_is_reported(instruction_set: str, kernel: str) -> None:
    for value in (np.nan, np.inf, -np.inf):
        for sample in (0, SAMPLES - 1):
            for joint in range(6):
                right = arguments(kernel)
                right[1][sample, joint] = value
                assert getattr(native, kernel)(*right) is False


@pytest.mark.parametrize("name", ["", "sse9", "AVX2", "base "])
def test_unknown_instruction_sets_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="this processor has no instruction set"):
        native.use_instruction_set(name)
    for wrong in (None, 3, b"base"):
        with pytest.raises(TypeError):
            native.use_instruction_set(wrong)


def test_a_refused_call_holds_no_array() -> None:
    """A buffer that were not given back would forbid resizing."""
    right = arguments("inverse_dynamics")
    memory = bytearray(SAMPLES * 6 * 8)
    q = memoryview(memory).cast("d", (SAMPLES, 6))
    with pytest.raises(REFUSALS):
        native.inverse_dynamics(right[0], q, right[2], right[3], np.empty((SAMPLES, 5)))
    assert native.inverse_dynamics(right[0], q, right[2], right[3], right[4]) is True
    q.release()
    memory.clear()
    assert not memory


def test_threads_do_not_disturb_each_other() -> None:
    chain = make_chain(ROBOT)
    states = [random_states(np.random.default_rng(k), ROBOT, 500) for k in range(4)]
    expected = [results(native, chain, *state) for state in states]
    wrong: list[str] = []

    def work(k: int) -> None:
        for _ in range(5):
            ours = results(native, chain, *states[k])
            wrong.extend(name for name in ours if not np.array_equal(ours[name], expected[k][name]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
