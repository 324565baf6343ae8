//! Tools that show the kernel's figures, against files that say what a test wants.

use std::collections::{BTreeMap, VecDeque};

use admin::{Files, World};
use linkctl::{Answer, Request};

use super::Recorder;

/// Files, and what each reading finds in them; the last text stays.
#[derive(Default)]
pub struct Papers(BTreeMap<&'static str, VecDeque<String>>);

impl Papers {
    /// Each file with what its readings find.
    pub fn of<const N: usize>(files: [(&'static str, &[&str]); N]) -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
        Self(files.map(|(path, each)| (path, texts(each))).into())
    }
}

impl Files for Papers {
    fn read(&mut self, path: &str) -> Result<String, String> {
        let none = || format!("{path}: no such file");
        let texts = self.0.get_mut(path).ok_or_else(none)?;
        match texts.len() {
            0 | 1 => texts.front().cloned().ok_or_else(none),
            _ => texts.pop_front().ok_or_else(none),
        }
    }

    fn write(&mut self, path: &str, _bytes: &[u8]) -> std::io::Result<()> {
        panic!("no tool here writes {path}")
    }
}

struct NoKernel;

impl admin::Kernel for NoKernel {
    fn call(&mut self, _: &Request) -> Result<Answer, String> {
        Err("nobody asks it".into())
    }
}

/// Runs a tool that ends at its second wait: code, output, complaints.
pub fn run(
    tool: fn(&[String], &mut World<'_>) -> u8,
    line: &str,
    mut files: Papers,
) -> (u8, String, String) {
    let words: Vec<String> = line.split(' ').map(String::from).collect();
    let mut waits = 0;
    let mut console = Recorder {
        out: String::new(),
        err: String::new(),
        meanwhile: &mut |_| {
            waits += 1;
            waits < 2
        },
    };
    let mut world = World {
        kernel: &mut NoKernel,
        files: &mut files,
        console: &mut console,
    };
    let code = tool(&words, &mut world);
    (code, console.out, console.err)
}

const HEADS: &str = "PID TID UID AGE USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG NAME";

fn microstates() -> Papers {
    let text = format!("{HEADS}\n1 1 0 100 60 40 0 0 0 0 0 0 1 2 3 4 init\n");
    Papers::of([
        ("/proc/microstates", &[&text]),
        ("/proc/loadavg", &["1.00 1.00 1.00 1/1 1\n"]),
    ])
}

#[test]
fn prstat_tells_of_a_thread_from_its_start_and_then_of_each_interval() {
    let (code, out, err) = run(admin::prstat::run, "prstat -mLc 1", microstates());
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let whole = "     1 0         60  40 0.0 0.0 0.0 0.0 0.0 0.0   1   2   3   4 init/1";
    let nothing = "     1 0        0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0   0   0   0   0 init/1";
    assert_eq!((lines[1], lines[4], lines.len()), (whole, nothing, 6));
}

#[test]
fn prstat_ends_after_as_many_reports_as_it_was_asked_for() {
    let (code, out, _) = run(admin::prstat::run, "prstat -m 1 1", microstates());
    assert_eq!((code, out.lines().count()), (0, 3));
    for line in ["prstat -m 0", "prstat -m 1 0", "prstat -p one"] {
        assert_eq!(run(admin::prstat::run, line, microstates()).0, 2, "{line}");
    }
}

#[test]
fn a_kernel_without_the_figures_is_named() {
    let (code, out, err) = run(admin::prstat::run, "prstat -mLc 1 1", Papers::default());
    let complaint = "prstat: /proc/microstates: no such file\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, "", complaint));
}

/// A machine with two CPUs in two moments, two seconds apart.
fn busy_machine() -> Papers {
    let threads = |latency_ns: u64| {
        let age_ns = 1_000_000_000 + latency_ns;
        let spent = format!("1000000000 0 0 0 0 0 0 {latency_ns}");
        format!("{HEADS}\n1 1 0 {age_ns} {spent} 0 0 0 0 loop\n")
    };
    let snmp = |again: u64| {
        let tcp = format!("Tcp: CurrEstab OutRsts RetransSegs\nTcp: 5 7 {again}\n");
        format!("{tcp}Udp: InDatagrams InErrors NoPorts\nUdp: 10 0 0\n")
    };
    let ext = |drops: u64| format!("TcpExt: TW ListenDrops\nTcpExt: 0 {drops}\n");
    let port = |count: u64| {
        format!(
            "Inter-| Receive\n face |bytes\n  eth0: {count} 9 0 1 0 0 0 0 {count} 9 0 0 0 0 0 0\n"
        )
    };
    let volume = |busy_ns: u64| {
        format!("REQUESTS BUSY WAITED FULL FAILED NAME\n20 {busy_ns} {busy_ns} 3 0 data\n")
    };
    let disk = |requests: u64, busy_ns: u64, failed: u64| {
        let heads = "REQUESTS BUSY WAITED COMMANDS FAILED RETRIED TIMED_OUT NAME";
        format!("{heads}\n{requests} {busy_ns} {busy_ns} 9 {failed} 0 0 vda\n")
    };
    Papers::of([
        (
            "/proc/microstates",
            &[&threads(1000), &threads(5_000_001_000)],
        ),
        ("/proc/loadavg", &["1.00 1.00 1.00 1/1 1\n"]),
        ("/proc/uptime", &["10.00 9.00\n", "12.00 9.00\n"]),
        (
            "/proc/stat",
            &[
                "cpu  10 0 10 1980\ncpu0 5 0 5 990\ncpu1 5 0 5 990\n",
                "cpu  310 0 110 1980\ncpu0 5 0 5 990\ncpu1 5 0 5 990\n",
            ],
        ),
        (
            "/proc/meminfo",
            &["MemTotal: 262144 kB\nMemAvailable: 65536 kB\n"],
        ),
        (
            "/proc/vmstat",
            &[
                "allocstall_normal 2\noom_kill 0\n",
                "allocstall_normal 9\noom_kill 1\n",
            ],
        ),
        ("/proc/net/snmp", &[&snmp(1), &snmp(4)]),
        ("/proc/net/netstat", &[&ext(0), &ext(11)]),
        ("/proc/net/dev", &[&port(100), &port(2100)]),
        ("/proc/volumes", &[&volume(0), &volume(1_000_000_000)]),
        ("/proc/disks", &[&disk(10, 0, 0), &disk(50, 500_000_000, 1)]),
        (
            "/proc/resched",
            &[
                "hertz 1000000000\nbelow 1024 9\nbelow 4194304 1\nlongest 2500000 call 9\n",
                "hertz 1000000000\nbelow 1024 9\nbelow 4194304 3\nlongest 2512345 call 9\n",
            ],
        ),
    ])
}

#[test]
fn use_says_of_each_resource_how_much_is_used_what_waits_and_what_failed() {
    let (code, out, err) = run(admin::resources::run, "use 2 2", busy_machine());
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().skip(10).collect();
    assert_eq!(
        lines,
        [
            "RESOURCE UTILISATION               SATURATION                   ERRORS",
            "cpu      100% of 2                 2.5 threads wait             --",
            "memory   75% of 256 MiB            7 waits                      1 programs killed",
            "kernel   2.512 ms at most          2 times over 1 ms            --",
            "eth0     1KB in, 1KB out /s        0 dropped                    0 bad",
            "tcp      5 open, 0 more /s         11 refused by full queues    3 sent again, 0 reset, 0 bad",
            "udp      0 in, 0 out /s            0 dropped by full queues     0 to nobody",
            "ip       0 in, 0 out /s            --                           0 bad, 0 without route",
            "data     50%, 0 requests /s        0.5 under way, 0 found full  0 failed",
            "vda      25%, 20 requests /s       0.2 under way                1 failed, 0 sent again, 0 lost",
        ]
    );
}

#[test]
fn use_leaves_out_what_a_kernel_does_not_count() {
    let papers = Papers::of([
        ("/proc/uptime", &["10.00 9.00\n"]),
        ("/proc/stat", &["cpu  1 0 1 98\ncpu0 1 0 1 98\n"]),
    ]);
    let (code, out, _) = run(admin::resources::run, "use 1 1", papers);
    let cpu = out.lines().nth(1).unwrap_or("");
    let words: Vec<&str> = cpu.split_whitespace().collect();
    assert_eq!(
        (code, words.as_slice()),
        (0, ["cpu", "2%", "of", "1", "--", "--"].as_slice())
    );
    let (code, _, err) = run(admin::resources::run, "use 1 1", Papers::default());
    assert_eq!(
        (code, err.as_str()),
        (1, "use: /proc/uptime: no such file\n")
    );
}

#[test]
fn use_prints_the_fields_that_scripts_ask_for() {
    let (code, out, _) = run(
        admin::resources::run,
        "use -p -o resource,errors 2 1",
        busy_machine(),
    );
    assert_eq!(
        (code, out.lines().nth(1)),
        (0, Some("memory:0 programs killed"))
    );
}

/// The kernel's file with these events: serial, kind, reason.
fn tcp_events(events: &[(u64, &str, &str)]) -> String {
    let mut text = String::from("SERIAL TIME KIND REASON STATE FLAGS LOCAL REMOTE\n");
    for (serial, kind, reason) in events {
        let ends = "127.0.0.1:40000 127.0.0.1:3000";
        text += &format!("{serial} {serial}000001000 {kind} {reason} SYN_SENT S {ends}\n");
    }
    text
}

#[test]
fn tcp_events_are_shown_once_by_kind_and_those_that_were_missed_are_counted() {
    let looks = [
        tcp_events(&[(0, "drop", "old")]),
        tcp_events(&[
            (0, "drop", "old"),
            (0, "retransmit", "syn"),
            (1, "drop", "new"),
        ]),
        tcp_events(&[(1, "drop", "new"), (2, "drop", "newer")]),
        tcp_events(&[(9, "drop", "newest")]),
    ];
    let looks = looks.each_ref().map(String::as_str);
    let papers = || Papers::of([("/proc/net/tcp_events", &looks)]);
    let (code, out, err) = run(admin::tcpwatch::drops, "tcpdrop 1 3", papers());
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    let line = |serial: u64, reason: &str| {
        let ends = "127.0.0.1:40000       127.0.0.1:3000       ";
        format!("      {serial}.000001 SYN_SENT    {ends} S     {reason}")
    };
    let head =
        "TIME           STATE       LOCAL                 REMOTE                FLAGS REASON";
    assert_eq!(lines, [head, &line(1, "new"), &line(2, "newer")]);
    let (_, out, _) = run(admin::tcpwatch::retransmits, "tcpretrans -a 1 2", papers());
    assert_eq!(out.lines().skip(1).collect::<Vec<_>>(), [line(0, "syn")]);
    let last = Papers::of([("/proc/net/tcp_events", &looks[2..])]);
    let (_, out, _) = run(admin::tcpwatch::drops, "tcpdrop 1 1", last);
    let expected = ["(6 events were missed)".to_string(), line(9, "newest")];
    assert_eq!(out.lines().skip(1).collect::<Vec<_>>(), expected);
    let (code, _, err) = run(
        admin::tcpwatch::time_waits,
        "tcptimewait",
        Papers::default(),
    );
    let complaint = "tcptimewait: /proc/net/tcp_events: no such file\n";
    assert_eq!((code, err.as_str()), (1, complaint));
}
