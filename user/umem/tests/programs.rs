//! Real programs on `libumem.so`, here on Linux.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn library() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.with_file_name("libumem.so")
}

/// Runs a command with the library; `None` if the program is not installed.
fn run(program: &str, args: &[&str], options: &str) -> Option<Output> {
    let output = Command::new(program)
        .args(args)
        .env("LD_PRELOAD", library())
        .env("UMEM_OPTIONS", options)
        .output();
    output.ok()
}

fn expect(program: &str, args: &[&str], said: &str) {
    expect_with(&["", "perthread_cache=0"], program, args, said);
}

fn expect_with(options: &[&str], program: &str, args: &[&str], said: &str) {
    for options in options {
        let Some(output) = run(program, args, options) else {
            eprintln!("{program} is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains(said),
            "{program} with {options:?}: {}\n{text}\n{errors}",
            output.status
        );
    }
}

fn compile(name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(name);
    let source = format!("{}/tests/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-fno-builtin", "-o"])
        .args([program.as_os_str(), source.as_ref(), library().as_os_str()])
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{source} compiles"
    );
    program.to_string_lossy().into_owned()
}

#[test]
fn the_whole_family_works_in_many_threads_and_across_fork() {
    expect(&compile("family"), &[], "fine");
}

#[test]
fn the_whole_family_works_with_every_option() {
    let options = [
        "nomagazines,allocator=next",
        "backend=sbrk,allocator=best,reap_interval=0",
        "backend=sbrk,sbrk_minalloc=64M,sbrk_pagesize=2M,allocator=first",
        "concurrency=1,max_contention=0,perthread_cache=64M,reap_interval=10",
        "size_add=100,size_remove=64,size_add=40000,size_remove=4096",
        "size_clear,size_add=48",
    ];
    expect_with(&options, &compile("family"), &[], "fine");
}

#[test]
fn caches_construct_once_and_memory_has_sizes() {
    let options = ["", "perthread_cache=0", "nomagazines"];
    expect_with(&options, &compile("caches"), &[], "fine");
}

#[test]
fn a_double_free_ends_the_program_with_a_report() {
    let program = compile("misuse");
    for (what, report) in [
        ("twice", "double free"),
        ("quietly", "double free"),
        ("between", "double free"),
        ("thread", "double free"),
        ("inside", "free inside of an object"),
        ("foreign", "which is not allocated"),
        ("span", "which is not allocated"),
    ] {
        let output = run(&program, &[what], "").expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(report),
            "{what}: {said}"
        );
    }
}

#[test]
fn with_umem_debug_misuse_is_reported_with_its_history() {
    let program = compile("misuse");
    for (what, reports) in [
        ("twice", ["double free", "freed by"]),
        ("quietly", ["double free", "freed by"]),
        ("overrun", ["write past the end", "allocated by"]),
        ("underrun", ["in front of", "umem"]),
        ("late", ["write after free", "freed by"]),
        ("foreign", ["which is not allocated", "umem"]),
    ] {
        let output = Command::new(&program)
            .arg(what)
            .env("LD_PRELOAD", library())
            .env("UMEM_DEBUG", "default")
            .output()
            .expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stderr);
        let is_reported = reports.iter().all(|report| said.contains(report));
        assert!(!output.status.success() && is_reported, "{what}: {said}");
    }
}

#[test]
fn guards_alone_find_overruns_and_use_after_free_with_cache_and_address() {
    let program = compile("misuse");
    for (what, report) in [
        ("overrun", "write past the end: object 0x"),
        ("late", "write after free: object 0x"),
    ] {
        let output = Command::new(&program)
            .arg(what)
            .env("LD_PRELOAD", library())
            .env("UMEM_DEBUG", "guards")
            .output()
            .expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stderr);
        let is_reported = said.contains(report) && said.contains("cache umem_alloc_");
        assert!(!output.status.success() && is_reported, "{what}: {said}");
    }
}

#[test]
fn the_transaction_log_tells_an_objects_history_and_counts_what_it_lost() {
    let program = compile("misuse");
    for (logging, reports) in [
        ("transaction", ["  allocated ", "(0 older records"]),
        ("transaction=200", ["  freed ", "(1 older records"]),
    ] {
        let output = Command::new(&program)
            .arg("twice")
            .env("LD_PRELOAD", library())
            .env("UMEM_DEBUG", "default")
            .env("UMEM_LOGGING", logging)
            .output()
            .expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stderr);
        let (_, log) = said.split_once("transaction log").expect("it has a log");
        assert!(reports.iter().all(|report| log.contains(report)), "{said}");
    }
}

#[test]
fn with_umem_debug_programs_still_work() {
    for (program, args, said) in [
        (
            "python3",
            [
                "-c",
                "import json; print(len(json.dumps(list(range(9999)))))",
            ],
            "58884",
        ),
        (
            "sqlite3",
            [":memory:", "select hex(zeroblob(9));"],
            "000000000000000000",
        ),
        ("sh", ["-c", "seq 200 | sort -r | head -1"], "99"),
    ] {
        let output = Command::new(program)
            .args(args)
            .env("LD_PRELOAD", library())
            .env("UMEM_DEBUG", "audit=4,contents,guards")
            .output();
        let Ok(output) = output else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains(said),
            "{program}: {text}{errors}"
        );
    }
}

#[test]
fn python_runs_its_own_tests() {
    let script = "import json, threading, os\n\
        data = [{'key': i, 'text': 'x' * (i % 700)} for i in range(3000)]\n\
        def work():\n    for _ in range(3): assert json.loads(json.dumps(data)) == data\n\
        threads = [threading.Thread(target=work) for _ in range(4)]\n\
        [thread.start() for thread in threads]; [thread.join() for thread in threads]\n\
        pid = os.fork()\n\
        if pid == 0: work(); os._exit(0)\n\
        assert os.waitpid(pid, 0)[1] == 0\n\
        print('fine')\n";
    expect("python3", &["-c", script], "fine");
}

#[test]
fn sqlite_sorts_and_checks_a_table() {
    let script = "create table t(a integer primary key, b text); \
        with recursive c(x) as (select 1 union all select x + 1 from c where x < 50000) \
        insert into t select x, 'row' || x || hex(randomblob(x % 90)) from c; \
        create index i on t(b); pragma integrity_check; select count(*) from t order by 1;";
    expect("sqlite3", &[":memory:", script], "ok\n50000");
}

#[test]
fn a_compiler_compiles() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello.c");
    fs::write(
        &source,
        "#include <stdio.h>\nint main(void) { return puts(\"hello\"); }\n",
    )
    .expect("the folder is writable");
    let assembly = ["-O2", "-S", "-o", "-", &source.to_string_lossy()].map(str::to_owned);
    expect("gcc", &assembly.each_ref().map(String::as_str), "main:");
}

#[test]
fn node_allocates_from_its_worker_threads() {
    let script = "const h = require('crypto'); let n = 0; const data = [];\
        for (let i = 0; i < 100000; i++) data.push({ i, text: 'x'.repeat(i % 100) });\
        for (let i = 0; i < 20; i++) require('zlib').gzip(Buffer.alloc(300000, 'abc'), (e, b) => {\
          if (e) throw e; h.pbkdf2('a', 'b', 100, 64, 'md5', () => { if (++n === 20) console.log('fine'); }); });";
    expect("node", &["-e", script], "fine");
}

/// A server on the library, killed when the test ends.
struct Server(Child);

impl Server {
    /// Starts it and waits for its socket; `None` if the program is not installed.
    fn start(command: &mut Command, socket: &Path) -> Option<Self> {
        let _ = fs::remove_file(socket);
        let command = command.env("LD_PRELOAD", library());
        let server = Self(command.stdout(Stdio::null()).spawn().ok()?);
        for _ in 0..600 {
            if socket.exists() {
                return Some(server);
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("the server has no socket after 30 seconds");
    }

    fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn redis_serves_its_benchmark() {
    let socket = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redis.sock");
    let path = socket.to_string_lossy();
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--save", "", "--unixsocket", &path]);
    let Some(mut server) = Server::start(&mut command, &socket) else {
        return;
    };
    let load = ["-q", "-n", "3000", "-c", "20", "-P", "8", "-s", &path];
    let output = Command::new("redis-benchmark")
        .args(load)
        .output()
        .expect("it comes with Redis");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("MSET"), "{said}");
    assert!(server.is_running());
}

#[test]
fn nginx_serves_and_compresses_a_page() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nginx");
    fs::create_dir_all(folder.join("logs")).expect("the folder is writable");
    let page = "a page that is compressed\n".repeat(5000);
    fs::write(folder.join("index.html"), &page).expect("the folder is writable");
    let (root, socket) = (folder.display(), folder.join("socket"));
    let settings = format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/errors;\n\
         events {{ }}\nhttp {{ access_log off; gzip on; gzip_types *; default_type text/html;\n\
         server {{ listen unix:{}; root {root}; }} }}\n",
        socket.display()
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, settings).expect("the folder is writable");
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).arg("-c").arg(&file);
    let Some(mut server) = Server::start(&mut command, &socket) else {
        return;
    };
    for _ in 0..30 {
        let curl = Command::new("curl")
            .args(["-s", "--compressed", "--unix-socket"])
            .arg(&socket)
            .arg("http://localhost/index.html")
            .output();
        let Ok(answer) = curl else { return };
        assert_eq!(String::from_utf8_lossy(&answer.stdout), page);
    }
    assert!(server.is_running());
}
