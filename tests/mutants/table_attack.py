"""Mutants of the guards against prepared files, mixed runs, hostile names and too much memory."""

from __future__ import annotations

from mutants.mutant import Mutant

_PROGRAMS = ("tests/attack/test_programs.py",)
_SMALL = ("tests/attack/test_small_files.py::test_no_small_file_takes_much_memory_or_time",)
_LOCKED = ("tests/attack/test_folders.py::test_what_is_no_lock_is_left_as_it_is",)
_HELD = ("tests/attack/test_folders.py::test_a_lock_survives_that_its_process_reads_the_file",)
_FORKED = ("tests/attack/test_folders.py::test_a_forked_child_names_its_parent_and_does_not_keep_its_lock",)
_LINKED = ("tests/attack/test_folders.py::test_a_linked_subfolder_is_refused",)
_MANIFEST_LINK = ("tests/attack/test_folders.py::test_a_linked_manifest_is_not_followed",)
_REMOVED = ("tests/attack/test_folders.py::test_a_file_that_is_removed_during_the_run_loses_no_input",)
_LINES = ("tests/attack/test_folders.py::test_a_line_of_the_manifest_with_other_types_does_not_count",)
_CONTINUED = ("tests/attack/test_identity.py::test_a_run_is_not_continued_with_something_else",)
_GLOBALS = ("tests/attack/test_identity.py::test_globals_and_the_functions_that_a_function_calls_are_seen",)
_UNCHANGED = ("tests/attack/test_identity.py::test_unchanged_code_is_accepted_in_a_new_process",)
_COUNTS = ("tests/attack/test_identity.py::test_what_a_model_counts_is_its_own_affair",)
_SEES = "tests/attack/test_what_identity_sees.py::"
_SEEN = (f"{_SEES}test_what_differs_is_seen",)
_IMPORTS = (f"{_SEES}test_modules_that_a_function_imports_or_reaches_through_others_are_read",)
_LAYERS = (f"{_SEES}test_a_run_is_not_continued_with_another_layer_head_or_argument",)
_USED = (f"{_SEES}test_use_changes_nothing_and_neither_does_another_process",)
_MODEL_FILE = ("tests/attack/test_identity.py::test_the_file_of_a_model_belongs_to_the_run",)
_DRAWN = ("tests/attack/test_names.py::test_a_name_is_drawn_letter_by_letter",)
_PRINTED = ("tests/attack/test_names.py::test_no_control_character_reaches_the_terminal_from_a_name_or_a_file",)
_SUMS = ("tests/attack/test_names.py::test_importances_of_others_are_printed_without_control_characters",)
_CELLS = ("tests/attack/test_names.py::test_cells_of_a_study_are_never_formulas",)
_MARKS = ("tests/attack/test_names.py::test_marks_of_the_page_are_only_text_in_a_label",)
_ONE = ("tests/attack/test_names.py::test_an_unexpected_error_of_one_input_does_not_stop_the_others",)
_FOREIGN = ("tests/attack/test_names.py::test_one_picture_with_a_name_that_is_not_utf_8_does_not_stop_the_others",)
_READERS = ("tests/attack/test_every_reader.py::test_altered_files_are_refused_or_can_be_printed",)
_META = ("tests/attack/test_tensors.py::test_what_has_no_numbers_is_one_sentence",)
_INFERENCE = ("tests/attack/test_tensors.py::test_parameters_of_inference_mode_are_put_back",)
_TRAINED = ("tests/attack/test_tensors.py::test_a_model_that_another_thread_trains_is_told_about",)
_LIMIT = ("tests/evaluation/test_calls.py::test_a_memory_limit_holds_from_the_first_point_on",)
_REFUSED = ("tests/evaluation/test_calls.py::test_a_limit_below_one_point_is_refused_with_what_it_takes",)
_OUTSIDE = ("tests/evaluation/test_calls.py::test_what_a_library_holds_outside_torch_is_weighed_too",)
_RETURNED = (
    "tests/evaluation/test_calls.py::test_memory_that_a_batch_leaves_behind_is_given_back_before_it_counts_twice",
)
_FREED = ("tests/evaluation/test_calls.py::test_freed_memory_is_given_back",)
_PIXELS = ("tests/cli/test_explain.py::test_too_many_pixels_and_too_many_bits_are_refused",)
_COMPRESSED = ("tests/test_files.py::test_a_compressed_file_is_refused_so_a_small_one_cannot_become_a_large_one",)
_EXCHANGED = ("tests/test_files.py::test_an_exchanged_array_is_noticed_by_its_sha256",)
_PICKLED = ("tests/cli/test_models.py::test_a_pickle_is_not_executed_unless_it_is_allowed",)
_THREADS = ("tests/attack/test_small_files.py::test_reading_results_starts_no_thread_that_could_abort_the_exit",)

#: What becomes of which place of which file, and who notices.
_CODE = (
    (
        "program",
        "cli/exported_program.py",
        "if not allow_pickle:",
        "if allow_pickle is None:",
        "a .pt2 program is loaded without the option",
        _PROGRAMS,
    ),
    (
        "pickle",
        "cli/model.py",
        "Any:\n    if not allow_pickle:",
        "Any:\n    if allow_pickle is None:",
        "a pickled model is loaded without the option",
        _PICKLED,
    ),
    (
        "weights",
        "cli/model.py",
        "_torch_load(path, weights_only=not allow_pickle)",
        "_torch_load(path, weights_only=False)",
        "weights may hold code",
        _PICKLED,
    ),
)
_FILES = (
    (
        "shape",
        "storage/container.py",
        " or skip + math.prod(shape) * dtype.itemsize != info.file_size",
        "",
        "the shape of an array need not fit its length",
        _SMALL,
    ),
    (
        "unknown-array",
        "storage/container.py",
        "known is not None and not known.fullmatch(name)",
        "known is None and not name",
        "a file may hold any array",
        _SMALL,
    ),
    (
        "overlap",
        "storage/container.py",
        "for info in archive.infolist()) > size:",
        "for info in archive.infolist()) > 10**6 * size:",
        "the parts of a file may overlap",
        _SMALL,
    ),
    (
        "compressed",
        "storage/container.py",
        "if any(info.compress_type != zipfile.ZIP_STORED",
        "if any(info.compress_type == -1",
        "a file may be compressed",
        _COMPRESSED,
    ),
    (
        "checksum",
        "storage/container.py",
        "if hashlib.sha256(blob).hexdigest() != digest:",
        "if not digest:",
        "the checksum of an array is not compared",
        _EXCHANGED,
    ),
    (
        "report-expands",
        "storage/embedded.py",
        "unpacking.decompress(compressed, _MOST_UNPACKED + 1)",
        "unpacking.decompress(compressed)",
        "a report unpacks without a limit",
        _SMALL,
    ),
    (
        "report-end",
        "storage/embedded.py",
        "if begin < 0 or end < 0:",
        "if begin < 0:",
        "a page without an end is read",
        _SMALL,
    ),
    (
        "report-depth",
        "storage/embedded.py",
        "except (ValueError, RecursionError) as error:",
        "except ValueError as error:",
        "deep JSON is a raw error",
        _SMALL,
    ),
    (
        "parquet-lists",
        "many/parquet_rows.py",
        "if types.is_primitive(kind) or types.is_null(kind)",
        "if not types.is_null(kind) or types.is_null(kind)",
        "columns of lists are decoded",
        _SMALL,
    ),
    (
        "parquet-cells",
        "many/parquet_rows.py",
        "if longest > _LONGEST:",
        "if longest > 10**9 * _LONGEST:",
        "a cell of text may be of any length",
        _SMALL,
    ),
    (
        "pixels",
        "files/images.py",
        "if image.width * image.height > MOST_PIXELS:",
        "if image.width * image.height > 10**12 * MOST_PIXELS:",
        "a picture may have any number of pixels",
        _PIXELS,
    ),
    (
        "raw-errors",
        "files/archive.py",
        "except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:",
        "except ValueError as error:",
        "an altered file is a raw error",
        _READERS,
    ),
    (
        "threads",
        "many/result_tables.py",
        "file.read(use_threads=False)",
        "file.read(use_threads=True)",
        "pyarrow starts threads that may abort the exit",
        _THREADS,
    ),
)
_FOLDERS = (
    (
        "lock-link",
        "storage/lock.py",
        'getattr(os, "O_NOFOLLOW", 0)',
        "0",
        "a link in place of the lock is followed",
        _LOCKED,
    ),
    (
        "lock-names",
        "storage/lock.py",
        "about.st_nlink != 1 or ",
        "",
        "a file with a second name is taken for a lock",
        _LOCKED,
    ),
    ("lock-long", "storage/lock.py", " or about.st_size > _LONGEST", "", "a long file is taken for a lock", _LOCKED),
    (
        "lock-pipe",
        "storage/lock.py",
        "not stat.S_ISREG(about.st_mode) or ",
        "",
        "a pipe is taken for a lock",
        _LOCKED,
    ),
    (
        "lock-twice",
        "storage/lock.py",
        "fcntl.flock(file, fcntl.LOCK_EX",
        "fcntl.lockf(file, fcntl.LOCK_EX",
        "the lock is lost when the process closes the file once more",
        _HELD,
    ),
    (
        "lock-inherited",
        "storage/lock.py",
        "            os.close(file)\n    _held.clear()",
        "            os.close(file)",
        "a forked child blames itself",
        _FORKED,
    ),
    (
        "lock-kept-open",
        "storage/lock.py",
        "        with suppress(OSError):\n            os.close(file)\n",
        "        pass\n",
        "a forked child keeps the lock of its parent",
        _FORKED,
    ),
    (
        "lock-released",
        "storage/lock.py",
        "if self._owner == os.getpid():",
        "if self._owner:",
        "a forked child releases the lock of its parent",
        _FORKED,
    ),
    (
        "linked-folder",
        "storage/folder.py",
        "if folder and (self.path / folder).is_symlink():",
        "if folder and (self.path / folder).is_file():",
        "a run writes and deletes through linked subfolders",
        _LINKED,
    ),
    (
        "linked-manifest",
        "storage/folder.py",
        'getattr(os, "O_NOFOLLOW", 0)',
        "0",
        "a link in place of the manifest is followed",
        _MANIFEST_LINK,
    ),
    (
        "manifest-removed",
        "storage/folder.py",
        "            if self._size() != self._manifest_size:\n                warn(",
        "            if self._size() < -1:\n                warn(",
        "what a removed manifest held is forgotten",
        _REMOVED,
    ),
    (
        "manifest-restored",
        "storage/folder.py",
        "        if self._size() != self._manifest_size:\n            self._write_manifest()\n        if not",
        "        if not",
        "a manifest that was removed at the end stays away",
        _REMOVED,
    ),
    (
        "settings-restored",
        "storage/folder.py",
        'if not (self.path / "run.json").is_file():\n            self._write_settings()',
        "if not self.path.is_dir():\n            self._write_settings()",
        "settings that were removed stay away",
        _REMOVED,
    ),
    (
        "manifest-types",
        "storage/folder.py",
        "return entry if self._is_plain(entry) and",
        "return entry if",
        "a line of the manifest may hold anything",
        _LINES,
    ),
)
_IDENTITY = (
    (
        "code",
        "models/identity.py",
        "for piece in compiled(fn.__code__):",
        "for piece in ():",
        "the code of a function does not count",
        _CONTINUED,
    ),
    (
        "closure",
        "models/code_reads.py",
        "yield name, cell.cell_contents",
        "yield name, None",
        "what a function closes over does not count",
        _CONTINUED,
    ),
    (
        "globals",
        "models/code_reads.py",
        "yield name, fn.__globals__[name]",
        "yield name, None",
        "the globals that a function reads do not count",
        _GLOBALS,
    ),
    (
        "partial",
        "models/identity.py",
        ', ("keywords", value.keywords)]',
        "]",
        "the arguments of a partial do not count",
        _CONTINUED,
    ),
    (
        "method",
        "models/identity.py",
        '[("", value.__func__), ("of", value.__self__)]',
        '[("", value.__func__)]',
        "the object of a method does not count",
        _CONTINUED,
    ),
    (
        "forward",
        "models/identity.py",
        "self._class(type(module), depth)\n",
        "self._write(_name(type(module)))\n",
        "the source of forward does not count",
        _CONTINUED,
    ),
    (
        "hooks",
        "models/identity.py",
        "for name in _HOOKS if",
        "for name in () if",
        "hooks do not count",
        _CONTINUED,
    ),
    (
        "attributes",
        "models/identity.py",
        "parts += self._attributes(module)",
        "parts += []",
        "the attributes of a module do not count",
        _CONTINUED,
    ),
    (
        "counters",
        "models/identity.py",
        "written, caches = assigned(codes) | _OWN | cached, changed(codes)",
        "written, caches = _OWN | cached, changed(codes)",
        "a model that counts its calls is another one after each",
        _COUNTS,
    ),
    (
        "target",
        "many/run_settings.py",
        "else _told_apart(describe, options.target),",
        "else describe(options.target),",
        "two target functions of one name are the same",
        _CONTINUED,
    ),
    (
        "options",
        "many/run_settings.py",
        "return _told_apart(full_name if _is_function(value) else repr, value)",
        "return full_name(value) if _is_function(value) else repr(value)",
        "two baselines, kernels or features of one name are the same",
        _CONTINUED,
    ),
    (
        "model",
        "many/run_settings.py",
        '"model.code": identity(model),',
        '"model.code": "",',
        "only weights tell models apart",
        _CONTINUED,
    ),
    (
        "addresses",
        "many/run_settings.py",
        're.sub(r" at 0x[0-9a-f]+", "", describe(value))',
        "describe(value)",
        "an address is part of the settings",
        _UNCHANGED,
    ),
    (
        "order-of-sets",
        "models/identity.py",
        'self._parts("set", enumerate(sorted(value, key=_shown)), depth)',
        'self._parts("set", enumerate(value), depth)',
        "the order of a set is part of the identity",
        _UNCHANGED,
    ),
    (
        "decorators",
        "models/identity.py",
        'self._parts("installed", own, depth)',
        'self._parts("installed", [], depth)',
        "what stands under a decorator of torch does not count",
        _SEEN,
    ),
    (
        "state",
        "models/identity.py",
        'self._parts("state", self._kept_by_pickle(value), depth)',
        'self._parts("state", [], depth)',
        "the state of a namespace, a range or a distribution does not count",
        _SEEN,
    ),
    (
        "class-members",
        "models/identity.py",
        "if _acts(member) or not name.startswith",
        "if _acts(member) or name.startswith",
        "the constants of a class do not count",
        _SEEN,
    ),
    (
        "containers",
        "models/code_reads.py",
        "found |= _loaded(instructions) if roots is None else roots",
        "found |= _loaded(instructions)",
        "a function that changes any numbers has no constants in dicts",
        _SEEN,
    ),
    (
        "caches",
        "models/code_reads.py",
        "found |= _loaded(instructions) if roots is None else roots",
        "found |= set()",
        "a model that fills a cache is another one after each call",
        _USED,
    ),
    (
        "setters",
        "models/identity.py",
        'called = {"forward", *self._called} if isinstance(value, nn.Module) else None',
        "called = None",
        "an attribute that any method sets does not count",
        _SEEN,
    ),
    (
        "slots",
        "models/identity.py",
        "for name in _slots(type(value)) if hasattr(value, name)",
        "for name in ()",
        "slots do not count",
        _SEEN,
    ),
    (
        "imports",
        "models/code_reads.py",
        'yield f"import {step.argval}", module',
        'yield f"import {step.argval}", None',
        "what a function imports does not count",
        _IMPORTS,
    ),
    (
        "layer-name",
        "many/run_settings.py",
        "return Layer.find(model, layer).name if isinstance(layer, torch.nn.Module) else _text(layer)",
        "return _text(layer)",
        "equal layers of a model are the same",
        _LAYERS,
    ),
    (
        "model-file",
        "cli/model.py",
        'return {"model_file": hashlib.sha256(path.read_bytes()).hexdigest()}',
        'return {"model_file": ""}',
        "the file that --model names does not count",
        _MODEL_FILE,
    ),
)
_NAMES = (
    (
        "formula",
        "bench/tables.py",
        "value[:1] in _FORMULA",
        "value[:1] == _FORMULA",
        "a text in a table may be a formula",
        _CELLS,
    ),
    ("mathtext", "views/names.py", '.replace("$", r"\\$")', "", "a name is read as mathematics", _DRAWN),
    (
        "names-of-files",
        "files/archive.py",
        "_explanation(arrays, _printed(meta), shared)",
        "_explanation(arrays, meta, shared)",
        "a file may write to the terminal",
        _PRINTED,
    ),
    (
        "unpacked-parts",
        "storage/packed.py",
        "if sum(info.file_size for info in infos) > most:",
        "if False:",
        "a saved generation may unpack to any size",
        _SMALL,
    ),
    (
        "shared-arrays",
        "files/archive.py",
        "small = small if shared is not None else",
        "small = small if shared is None else",
        "every explanation of a file has copies of all arrays",
        _SMALL,
    ),
    (
        "result-tables",
        "many/result_tables.py",
        "_bounded(file, _MOST_BYTES + _MOST_TIMES * len(content))",
        "_bounded(file, 2**60)",
        "a table of results may stand for any number of rows",
        _SMALL,
    ),
    (
        "names-of-sums",
        "many/importance.py",
        'tuple(printable(str(name)) for name in known["names"])',
        'tuple(str(name) for name in known["names"])',
        "names of an importance may write to the terminal",
        _SUMS,
    ),
    (
        "names-of-features",
        "features/coordinate_names.py",
        "tuple(printable(str(name)) for name in names)",
        "tuple(str(name) for name in names)",
        "names of features may write to the terminal",
        _PRINTED,
    ),
    (
        "one-input",
        "cli/explain_run.py",
        "except Exception as error:  # whatever",
        "except (ValueError, TypeError) as error:  # whatever",
        "an unexpected error of one input stops the others",
        _ONE,
    ),
    (
        "foreign-names",
        "storage/container.py",
        'text.encode("utf-8", "backslashreplace")',
        'text.encode("utf-8")',
        "a name that is not UTF-8 stops the job",
        _FOREIGN,
    ),
    (
        "marks",
        "report/html_page.py",
        'return re.sub("@([A-Z]+)@", lambda mark: marks[mark[1]], template)',
        'return [template := template.replace(f"@{name}@", part) for name, part in marks.items()][-1]',
        "a label may hold a mark of the page",
        _MARKS,
    ),
)
_MEMORY = (
    (
        "first-point",
        "evaluation/calls.py",
        "sizer.room = 1 if self._limited else max",
        "sizer.room = max",
        "the first batch ignores max_memory",
        _LIMIT,
    ),
    (
        "growth",
        "evaluation/batching.py",
        "min(self.room, _GROWTH * n_points)",
        "_GROWTH * n_points",
        "what was weighed does not limit batches",
        _LIMIT,
    ),
    (
        "weighing",
        "evaluation/calls.py",
        "if not (first or (self._weighs and sizer.unweighed(n_points))):",
        "if not first:",
        "only the first batch is weighed",
        _REFUSED,
    ),
    (
        "resident",
        "evaluation/memory.py",
        "self.bytes = max(self.bytes, self._resident.stop())",
        "self._resident.stop()",
        "what libraries hold outside torch is not weighed",
        _OUTSIDE,
    ),
    (
        "too-low",
        "evaluation/calls.py",
        "needed > self._max_memory and",
        "needed > 10**9 * self._max_memory and",
        "a limit below one point is accepted",
        _REFUSED,
    ),
    (
        "given-back",
        "evaluation/calls.py",
        "if held + n_bytes > self._max_memory:",
        "if held + n_bytes < 0:",
        "freed memory is kept beside the next batch",
        _RETURNED,
    ),
    (
        "trim",
        "evaluation/memory.py",
        "ctypes.CDLL(None).malloc_trim(0)",
        "ctypes.CDLL(None)",
        "nothing is given back",
        _FREED,
    ),
)
_TENSORS = (
    (
        "meta",
        "models/torch_module.py",
        "if isinstance(owner, nn.Module) and not is_loaded(owner):",
        "if isinstance(owner, nn.Module) and owner is None:",
        "a module without numbers is called",
        _META,
    ),
    (
        "inference",
        "models/frozen.py",
        "with torch.inference_mode(owner.is_inference()):",
        "with torch.inference_mode(False):",
        "parameters of inference_mode stay frozen",
        _INFERENCE,
    ),
    (
        "trained",
        "models/frozen.py",
        "if written:",
        "if written is None:",
        "a model that changes while it is explained is not told about",
        _TRAINED,
    ),
)

MUTANTS = tuple(
    Mutant(f"attack-{name}", "SECURITY.md", file, original, mutated, why, checks)
    for guards in (_CODE, _FILES, _FOLDERS, _IDENTITY, _NAMES, _MEMORY, _TENSORS)
    for name, file, original, mutated, why, checks in guards
)
