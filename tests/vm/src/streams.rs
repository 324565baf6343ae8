//! A program's input and output are what the command has at its own descriptors: streams of
//! bytes that keep every value and every end, a program's errors beside its output, and a
//! pipe that nobody reads any more.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};

/// The tests.
pub const TESTS: &[Test] = &[
    ("every value of a byte passes through a program", all_bytes),
    ("a program's errors come apart from its output", apart),
    (
        "a program whose output nobody reads any more is ended by SIGPIPE",
        broken_pipe,
    ),
    (
        "much passes through a program that copies it, and is the same",
        much,
    ),
    (
        "a slow reader gets all that a program wrote before it ended",
        slow_reader,
    ),
    (
        "an output that a program closes ends before the machine",
        closed_early,
    ),
    ("many small writes arrive whole and in order", small_writes),
];

/// How long a program may take after it has begun.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a short and a long test copy.
const MUCH_BYTES: u64 = 64 << 20;
const VERY_MUCH_BYTES: u64 = 1 << 30;

fn all_bytes(setup: &Setup) -> Result<(), String> {
    let sent: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let mut program = Program::start(setup, &["cat"])?;
    program.send_all(sent.clone());
    let (status, output, errors) = program.end()?;
    match status == 0 && output == sent && errors.is_empty() {
        true => Ok(()),
        false => Err(format!("status {status}: {output:?}, {}", text(&errors))),
    }
}

fn apart(setup: &Setup) -> Result<(), String> {
    let script = "echo out; echo err >&2; echo again; echo more >/dev/stderr; exit 4";
    let program = Program::start(setup, &["busybox", "sh", "-c", script])?;
    let (status, output, errors) = program.end()?;
    match (status, &*output, &*errors) {
        (4, b"out\nagain\n", b"err\nmore\n") => Ok(()),
        _ => Err(format!(
            "status {status}: {:?} and {:?}",
            text(&output),
            text(&errors)
        )),
    }
}

fn broken_pipe(setup: &Setup) -> Result<(), String> {
    // Without the signal it would write for ever.
    let mut program = Program::start(setup, &["yes"])?;
    let mut output = program.output()?;
    let mut first = [0; 4];
    output.read_exact(&mut first).map_err(why)?;
    drop(output);
    let (status, _, errors) = program.end()?;
    match (status, &first, errors.is_empty()) {
        (141, b"y\ny\n", true) => Ok(()),
        _ => Err(format!("status {status}: {first:?}, {}", text(&errors))),
    }
}

fn much(setup: &Setup) -> Result<(), String> {
    let bytes = match setup.is_long() {
        true => VERY_MUCH_BYTES,
        false => MUCH_BYTES,
    };
    let mut program = Program::start(setup, &["cat"])?;
    let mut input = program.input()?;
    let mut output = program.output()?;
    let sender = thread::spawn(move || {
        let mut numbers = Numbers::default();
        let mut left = bytes;
        while left != 0 {
            let piece = numbers.next_piece();
            input.write_all(&piece)?;
            left -= piece.len() as u64;
        }
        Ok::<(), io::Error>(())
    });
    let mut numbers = Numbers::default();
    let mut received = 0;
    let mut piece = vec![0; Numbers::PIECE_BYTES];
    while received < bytes {
        output.read_exact(&mut piece).map_err(why)?;
        if piece != numbers.next_piece() {
            return Err(format!(
                "what comes after {received} bytes is something else"
            ));
        }
        received += piece.len() as u64;
    }
    let rest = output.read(&mut piece).map_err(why)?;
    sender
        .join()
        .map_err(|_| "the sender failed")?
        .map_err(why)?;
    let (status, _, errors) = program.end()?;
    match (status, rest) {
        (0, 0) => Ok(()),
        _ => Err(format!(
            "status {status}, {rest} bytes more, {}",
            text(&errors)
        )),
    }
}

fn slow_reader(setup: &Setup) -> Result<(), String> {
    const LINES: u32 = 200_000;
    let mut program = Program::start(setup, &["seq", &LINES.to_string()])?;
    let mut output = program.output()?;
    let mut first = [0; 1];
    output.read_exact(&mut first).map_err(why)?;
    // All that fits between the program and us is full now, for far more is to come.
    thread::sleep(Duration::from_secs(1));
    if program.has_ended() {
        return Err("the machine ended while it had output for us".into());
    }
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).map_err(why)?;
    let (status, _, _) = program.end()?;
    let wanted: String = (1..=LINES).map(|line| format!("{line}\n")).collect();
    match status == 0 && wanted.as_bytes()[1..] == rest {
        true => Ok(()),
        false => Err(format!(
            "status {status}, {} of {} bytes",
            rest.len() + 1,
            wanted.len()
        )),
    }
}

fn closed_early(setup: &Setup) -> Result<(), String> {
    let script = "echo last; exec >&-; read line; exit 6";
    let mut program = Program::start(setup, &["busybox", "sh", "-c", script])?;
    let mut input = program.input()?;
    let mut said = Vec::new();
    program.output()?.read_to_end(&mut said).map_err(why)?;
    if program.has_ended() {
        return Err("the machine ended before its input".into());
    }
    input.write_all(b"go\n").map_err(why)?;
    let (status, _, _) = program.end()?;
    match (status, &*said) {
        (6, b"last\n") => Ok(()),
        _ => Err(format!("status {status}: {:?}", text(&said))),
    }
}

fn small_writes(setup: &Setup) -> Result<(), String> {
    const LINES: usize = 5000;
    let script = format!("n=0; while [ $n -lt {LINES} ]; do echo $n; n=$((n+1)); done");
    let program = Program::start(setup, &["busybox", "sh", "-c", &script])?;
    let (status, output, _) = program.end()?;
    let wanted: String = (0..LINES).map(|line| format!("{line}\n")).collect();
    match status == 0 && output == wanted.as_bytes() {
        true => Ok(()),
        false => Err(format!(
            "status {status}, {} of {} bytes",
            output.len(),
            wanted.len()
        )),
    }
}

fn why(error: io::Error) -> String {
    error.to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes without a pattern that a lost or doubled piece would fit into.
struct Numbers(u64);

impl Default for Numbers {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Numbers {
    const PIECE_BYTES: usize = 64 << 10;

    /// The next bytes, by xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
    fn next_piece(&mut self) -> Vec<u8> {
        let mut piece = Vec::with_capacity(Self::PIECE_BYTES);
        while piece.len() < Self::PIECE_BYTES {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            piece.extend(self.0.to_le_bytes());
        }
        piece
    }
}

/// A program in a machine, with three pipes to the command. Dropping it ends both.
struct Program(Child);

impl Program {
    fn start(setup: &Setup, program: &[&str]) -> Result<Self, String> {
        let mut command: Command = setup.command(&["--net", "none"]);
        let child = command
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child
            .map(Self)
            .map_err(|error| format!("sietch does not start: {error}"))
    }

    fn input(&mut self) -> Result<ChildStdin, String> {
        self.0.stdin.take().ok_or("no pipe to it".into())
    }

    fn output(&mut self) -> Result<impl Read + use<>, String> {
        self.0.stdout.take().ok_or("no pipe from it".into())
    }

    /// Sends these bytes and the end, beside whoever reads.
    fn send_all(&mut self, bytes: Vec<u8>) {
        if let Some(mut input) = self.0.stdin.take() {
            thread::spawn(move || input.write_all(&bytes));
        }
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(Some(_)))
    }

    /// Its status, and the rest of its output and of its errors.
    fn end(mut self) -> Result<(i32, Vec<u8>, Vec<u8>), String> {
        drop(self.0.stdin.take());
        let output = self.0.stdout.take().map(collect);
        let errors = self.0.stderr.take().map(collect);
        let deadline = Instant::now() + BOOT_PATIENCE + PATIENCE;
        while !self.has_ended() {
            if Instant::now() > deadline {
                return Err("the machine does not end".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        let status = self.0.wait().map_err(why)?.code().unwrap_or(-1);
        let all = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
            reader
                .and_then(|reader| reader.join().ok())
                .unwrap_or_default()
        };
        Ok((status, all(output), all(errors)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The second one ends the machine by force.
        for _ in 0..2 {
            if self.has_ended() {
                return;
            }
            crate::guest::terminate(&self.0);
            thread::sleep(Duration::from_millis(200));
        }
        let _ = self.0.wait();
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}
