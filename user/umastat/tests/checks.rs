//! What the tables of `umastat` must show of programs on `libumem.so`, and what its options
//! do to them: the checks of libumem's behaviour in `docs/umem.md`.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

// The library is built because this is used.
use umem as _;

fn library() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.with_file_name("libumem.so")
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("steps");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/steps.c");
        let status = Command::new("cc")
            .args(["-O1", "-pthread", "-fno-builtin", "-o"])
            .args([program.as_os_str(), source.as_ref(), library().as_os_str()])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "{source}");
        program
    })
}

/// The program `steps` under the library.
struct Steps {
    child: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Steps {
    fn start(options: &str, debug: &str) -> Self {
        let mut child = Command::new(program())
            .env("LD_PRELOAD", library())
            .env("UMEM_OPTIONS", options)
            .env("UMEM_DEBUG", debug)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was compiled");
        let input = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        Self {
            child,
            input,
            answers,
            errors,
        }
    }

    /// Does one step and returns the answer.
    fn step(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        answer.trim().into()
    }

    /// The first line that it says on standard error.
    fn error(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).expect("it is text");
        line
    }

    fn tables(&self) -> Tables {
        let output = Command::new(env!("CARGO_BIN_EXE_umastat"))
            .arg(self.child.id().to_string())
            .output()
            .expect("it is built");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        Tables::parse(&String::from_utf8_lossy(&output.stdout))
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `umastat` printed.
#[derive(Debug)]
struct Tables {
    threads: usize,
    /// Cells by the name of the cache and of the column.
    cells: BTreeMap<(String, String), String>,
}

impl Tables {
    fn parse(text: &str) -> Self {
        // Names of columns are one word here.
        let text = text.replace("cache name", "cache").replace("in ", "in-");
        let (threads, caches) = text.split_once("\ncache").expect("there are caches");
        let mut lines = caches.lines().take_while(|line| !line.is_empty());
        let heads: Vec<&str> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let mut cells = BTreeMap::new();
        for line in lines {
            let mut words = line.split_whitespace();
            let name = words.next().expect("a cache has a name");
            for (head, word) in heads.iter().zip(words) {
                cells.insert((name.into(), (*head).into()), word.into());
            }
        }
        Self {
            threads: threads.lines().count().saturating_sub(1),
            cells,
        }
    }

    fn text(&self, cache: &str, column: &str) -> &str {
        let key = (cache.into(), column.into());
        self.cells.get(&key).map_or("", String::as_str)
    }

    /// A number of a cache behind malloc, 0 without such a cache.
    fn number(&self, size: usize, column: &str) -> usize {
        let text = self.text(&format!("umem_alloc_{size}"), column);
        text.parse().unwrap_or(0)
    }

    fn has_column(&self, column: &str) -> bool {
        self.cells.keys().any(|(_, name)| name == column)
    }
}

/// How often the library's locks were taken, by callgrind.
fn locks_taken(threads: usize, count: usize) -> u64 {
    let counts = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("locks-{threads}-{count}"));
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "-q"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(program())
        .args(["pairs", &threads.to_string(), &count.to_string()])
        .env("LD_PRELOAD", library())
        // Idle memory returns by the clock, which takes locks.
        .env("UMEM_OPTIONS", "reap_interval=1000")
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "is valgrind installed?"
    );
    let text = std::fs::read_to_string(&counts).expect("callgrind wrote it");
    let (mut names, mut is_lock, mut calls) = (BTreeMap::new(), false, 0);
    for line in text.lines() {
        // "cfn=(12) name", and only "cfn=(12)" when it is named again, then "calls=3 ...".
        let function = line.strip_prefix("cfn=").or(line.strip_prefix("fn="));
        if let Some((number, name)) = function.and_then(|text| text.split_once(')')) {
            let name = name.trim();
            if !name.is_empty() {
                names.insert(
                    number.to_owned(),
                    name.contains("Lock") && name.contains("change"),
                );
            }
            is_lock = names.get(number).copied().unwrap_or(false);
        } else if let Some(text) = line.strip_prefix("calls=").filter(|_| is_lock) {
            let number = text.split(' ').next().unwrap_or_default();
            calls += number.parse::<u64>().expect("a number of calls");
        }
    }
    calls
}

#[test]
fn one_thread_takes_no_lock_for_its_pairs_after_the_first() {
    let few = locks_taken(1, 10);
    assert!(few > 0, "the locks are seen");
    assert_eq!(locks_taken(1, 20_000), few);
}

#[test]
fn sixteen_threads_share_no_lock_for_their_pairs() {
    // How threads start and end beside each other differs by a few.
    let (few, many) = (locks_taken(16, 10), locks_taken(16, 5_000));
    assert!(many < few + 100, "{many} with 80000 pairs, {few} with 160");
}

#[test]
fn a_thread_keeps_a_mebibyte_unless_told_otherwise() {
    let kept = |options| {
        let mut steps = Steps::start(options, "");
        steps.step("fill 64 32768 20");
        steps.tables().number(64, "in-ptc") * 64
    };
    let (usual, more) = (kept(""), kept("perthread_cache=64M"));
    assert!(usual > 0 && usual <= 1 << 20, "{usual}");
    assert!(more > 1 << 20, "{more}");
    let mut steps = Steps::start("perthread_cache=0", "");
    steps.step("fill 64 32768 1");
    let tables = steps.tables();
    assert!(
        tables.threads == 0 && !tables.has_column("in-ptc"),
        "{tables:?}"
    );
}

#[test]
fn what_a_thread_kept_is_free_when_it_ends() {
    let mut steps = Steps::start("reap_interval=1000", "");
    steps.step("spawn 400 30");
    let during = steps.tables();
    assert!(
        during.threads == 2 && during.number(400, "in-ptc") >= 30,
        "{during:?}"
    );
    steps.step("join");
    let after = steps.tables();
    assert_eq!((after.threads, after.number(400, "in-ptc")), (1, 0));
    assert_eq!(after.number(400, "total"), during.number(400, "total"));
}

#[test]
fn with_guards_threads_keep_nothing() {
    let mut steps = Steps::start("", "guards");
    steps.step("fill 64 100 1");
    let tables = steps.tables();
    assert!(
        tables.threads == 0 && !tables.has_column("in-ptc"),
        "{tables:?}"
    );
}

#[test]
fn threads_keep_objects_of_every_class_and_nothing_larger() {
    let mut steps = Steps::start("", "");
    for size in [432, 433, 32768, 32769] {
        steps.step(&format!("fill {size} 3 1"));
    }
    let tables = steps.tables();
    for size in [432, 448, 32768] {
        assert!(tables.number(size, "in-ptc") >= 3, "{size}: {tables:?}");
    }
    let caches = tables
        .cells
        .keys()
        .filter_map(|(name, _)| name.strip_prefix("umem_alloc_"));
    let largest = caches.filter_map(|size| size.parse::<usize>().ok()).max();
    assert_eq!(largest, Some(32768));
}

#[test]
fn after_size_clear_every_request_has_the_largest_size() {
    let mut steps = Steps::start("size_clear", "");
    steps.step("hold 1 7");
    steps.step("hold 5000 7");
    steps.step("hold 100000 7");
    let tables = steps.tables();
    assert!(tables.number(131_072, "in-use") >= 21, "{tables:?}");
    let mut names = tables.cells.keys().map(|(name, _)| name);
    assert!(names.all(|name| name == "umem_alloc_131072"), "{tables:?}");
}

#[test]
fn sizes_are_added_rounded_up_and_removed() {
    let mut steps = Steps::start("size_add=100,size_remove=64,size_add=40000", "");
    assert!(steps.error().ends_with("size_add=100: rounded up to 104\n"));
    for size in [100, 105, 60, 39_000] {
        steps.step(&format!("hold {size} 50"));
    }
    let tables = steps.tables();
    for size in [104, 112, 80, 40_000] {
        let held = tables.number(size, "in-use") - tables.number(size, "in-ptc");
        assert_eq!(held, 50, "{size}: {tables:?}");
    }
    assert_eq!(tables.number(64, "total"), 0);
}

#[test]
fn a_bad_value_is_reported_and_its_word_ignored() {
    for (word, report) in [
        ("perthread_cache=1X", "not a number"),
        ("reap_interval=", "not a number"),
        ("max_contention", "not a number"),
        ("concurrency=0", "at least one"),
        ("allocator=worst", "no such choice"),
        ("backend=tape", "no such choice"),
        ("sbrk_minalloc=-1", "not a number"),
        ("sbrk_pagesize=12K", "no such page size"),
        ("size_add=131073", "sizes are 1 to 131072"),
        ("size_add=64", "there is such a cache"),
        ("size_remove=65", "there is no such cache"),
        ("size_remove=32768", "the largest cache stays"),
    ] {
        let mut steps = Steps::start(&format!("unknown=1,{word}"), "");
        let said = steps.error();
        let expected = format!("umem: UMEM_OPTIONS: {word}: {report}");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(steps.step("fill 64 10 1"), "done");
        assert!(steps.tables().number(64, "in-ptc") > 0, "{word}");
    }
}

#[test]
fn memory_comes_from_the_break_if_told_so() {
    for (options, place) in [
        ("", "elsewhere"),
        ("backend=mmap", "elsewhere"),
        ("backend=sbrk", "below"),
        ("backend=sbrk,sbrk_minalloc=64M,sbrk_pagesize=2M", "below"),
    ] {
        let mut steps = Steps::start(options, "");
        assert_eq!(steps.step("heap"), place, "{options}");
    }
}

#[test]
fn caches_that_the_program_made_are_listed_under_their_names() {
    let mut steps = Steps::start("", "");
    steps.step("caches");
    let tables = steps.tables();
    for (column, expected) in [
        ("size", "48"),
        ("in-use", "3"),
        ("in-ptc", "-"),
        ("succeed", "4"),
        ("fail", "0"),
    ] {
        assert_eq!(tables.text("things", column), expected, "{column}");
    }
    assert_eq!(tables.text("gone", "size"), "");
}
