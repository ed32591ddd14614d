"""What a machine is called."""

from datum._inspect.measure import measurement


def test_this_machine_has_a_processor_and_python():
    found = measurement.find_machine({"torch": "9"})
    assert found.cpu
    assert found.cores >= 1
    assert list(found.versions) == ["Python", "torch"]


def test_a_machine_in_one_line():
    found = measurement.Machine("cpu", 1, None, "Linux", {"torch": "9"})
    assert str(found) == "cpu, 1 core, Linux"


def test_without_a_file_on_the_processor_the_system_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement, "_CPU_FILE", tmp_path / "none")
    assert measurement.find_machine({}).cpu


def test_the_name_of_a_processor_has_no_runs_of_blanks(tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    file.write_text("processor : 0\nmodel name\t: Some   CPU  @ 2 GHz\n")
    monkeypatch.setattr(measurement, "_CPU_FILE", file)
    assert measurement.find_machine({}).cpu == "Some CPU @ 2 GHz"


def test_memory_may_be_unknown(monkeypatch):
    def refuse(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(measurement.os, "sysconf", refuse)
    assert measurement.find_machine({}).memory_bytes is None
