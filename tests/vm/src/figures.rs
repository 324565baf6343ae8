//! The kernel's figures about threads, and the tools that show them.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "Microstates say where the time of each thread goes",
        microstates,
    ),
    (
        "prstat shows who computes, who sleeps and who waits for a CPU",
        shows_threads,
    ),
    (
        "use shows saturation: threads that wait for a CPU, and a busy volume",
        shows_saturation,
    ),
    (
        "tcpretrans and tcpdrop name the connection, its state and the reason",
        shows_trouble,
    ),
];

const PATIENCE: Duration = Duration::from_secs(120);
const PROGRAM: &str = "tests/harness/microstates.c";

fn microstates(setup: &Setup) -> Result<(), String> {
    let program = build::c(Path::new(PROGRAM))?;
    let program = program.display().to_string();
    // This program itself is a file that is large enough to be read page by page.
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let (Some(folder), Some(name)) = (own.parent(), own.file_name()) else {
        return Err("this program has no file".into());
    };
    let volume = format!("{}:/data:ro", folder.display());
    let file = format!("/data/{}", name.display());
    let args = ["--net", "none", "--volume", &volume, &program, &file];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let failed: Vec<&str> = end
        .console
        .lines()
        .filter(|line| !line.starts_with("ok "))
        .collect();
    match (end.status, failed.as_slice()) {
        (0, []) => Ok(()),
        (status, _) => Err(format!("status {status}: {failed:?} {}", end.console)),
    }
}

/// The tool as a file to add to an image.
fn tool(name: &str) -> Result<String, String> {
    let built = build::tool("admin", name)?;
    Ok(format!("{}:/bin/{name}", built.display()))
}

/// More programs that compute than there are CPUs, and one that sleeps.
const CROWD: &str = "for n in 1 2 3 4; do (while :; do :; done) & done; sleep 1000 & ";

fn shows_threads(setup: &Setup) -> Result<(), String> {
    let prstat = tool("prstat")?;
    let script = format!("{CROWD} prstat -mLc 2 2");
    let args = [
        "--net", "none", "--add", &prstat, "busybox", "sh", "-c", &script,
    ];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let heads = "USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG PROCESS/LWPID";
    let reports: Vec<&str> = end.console.split(heads).collect();
    let [_, _, report] = reports[..] else {
        return Err(format!("there are not two reports in {:?}", end.console));
    };
    let shares = |line: &str| -> Option<Vec<f64>> {
        let columns = line.split_whitespace().skip(2).take(8);
        columns.map(|share| share.parse().ok()).collect()
    };
    let of = |name: &str| -> Vec<Vec<f64>> {
        let lines = report.lines().filter(|line| line.contains(name));
        lines.filter_map(shares).collect()
    };
    let fault = |what: &str| Err(format!("{what}:{report}"));
    for states in of("/").iter().filter(|states| states.len() == 8) {
        // Eight shares, each rounded to a tenth or a whole.
        if (states.iter().sum::<f64>() - 100.0).abs() > 4.0 {
            return fault("a line does not add up to a hundred");
        }
    }
    let (crowd, sleeper) = (of("busybox/"), of("sleep/"));
    let count = |state: usize| crowd.iter().filter(|states| states[state] > 5.0).count();
    // Threads stay where they are while all CPUs work, so one may have a CPU for itself.
    if count(0) < 4 || count(7) < 2 {
        return fault("four that compute do not use their CPUs by turns");
    }
    match sleeper.as_slice() {
        [states] if states[6] > 90.0 => Ok(()),
        _ => fault("the sleeper does not sleep"),
    }
}

fn shows_saturation(setup: &Setup) -> Result<(), String> {
    let tool = tool("use")?;
    let script = format!(
        "use -p -o resource,saturation 1 2; {CROWD} \
         while :; do ls -lR /data >/dev/null; done & \
         sleep 1; grep procs_running /proc/stat; use -p -o resource,utilisation,saturation 2 2"
    );
    let volume = format!("{}:/data:ro", Path::new("tests/vm").display());
    let args = [
        "--net", "none", "--add", &tool, "--volume", &volume, "busybox", "sh", "-c", &script,
    ];
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let fault = |what: &str| Err(format!("{what}: {}", end.console));
    let words: Vec<Vec<&str>> = end
        .console
        .lines()
        .map(|line| line.trim().split(':').collect())
        .collect();
    let of = |resource: &str| -> Vec<f64> {
        let lines = words.iter().filter(|words| words[0] == resource);
        let numbers = lines.filter_map(|words| words.last()?.split(' ').next()?.parse().ok());
        numbers.collect()
    };
    // Nothing runs between the first two reports, four loops between the last two.
    match of("cpu")[..] {
        [_, quiet, _, loud] if quiet < 0.5 && loud > 1.0 && loud > quiet => {}
        _ => return fault("the waits for a CPU are not told"),
    }
    let running = end
        .console
        .lines()
        .find_map(|line| line.trim().strip_prefix("procs_running "));
    if running
        .and_then(|count| count.parse::<u32>().ok())
        .is_none_or(|count| count < 5)
    {
        return fault("four loops and a reader do not run");
    }
    let volumes = words
        .iter()
        .filter(|words| words.len() == 3 && words[1].contains("requests"));
    let busy = |words: &Vec<&str>| !words[1].contains(" 0 requests");
    match volumes.clone().any(busy) {
        true => Ok(()),
        false => fault("no volume is busy"),
    }
}

fn shows_trouble(setup: &Setup) -> Result<(), String> {
    let tools = [tool("tcpretrans")?, tool("tcpdrop")?];
    // Nobody answers at the first address; nobody listens at the second.
    let script = "(sleep 4 | nc 10.9.9.9 80) & sleep 3; nc 127.0.0.1 81 </dev/null; \
                  tcpretrans -a 1 1; tcpdrop -a 1 1";
    let mut args = vec!["--ip", "10.9.9.1/24"];
    tools.iter().for_each(|tool| args.extend(["--add", tool]));
    args.extend(["busybox", "sh", "-c", script]);
    let end = setup.start(&args)?.wait(PATIENCE)?;
    let holds = |parts: [&str; 3]| {
        let mut lines = end.console.lines();
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    match holds([" SYN_SENT ", " 10.9.9.9:80 ", " syn"])
        && holds([" CLOSE ", " 127.0.0.1:81 ", " S     no_socket"])
    {
        true => Ok(()),
        false => Err(format!("there is no word of it: {}", end.console)),
    }
}
