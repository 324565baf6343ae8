//! Asking QEMU itself: the QEMU Machine Protocol, one JSON object a line.
//!
//! QEMU serves one connection at a time; another one waits for its greeting.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to QEMU.
#[derive(Debug)]
pub struct Qmp {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Qmp {
    /// Connects to the socket of a machine ([`crate::Machine::qmp_socket`]).
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let writer = UnixStream::connect(socket)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(writer.try_clone()?);
        let mut qmp = Self { reader, writer };
        qmp.read_object()?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Copies `bytes` of the machine's memory from the physical address `at` into a file.
    pub fn save_memory(&mut self, at: u64, bytes: u64, file: &Path) -> io::Result<()> {
        let arguments = json!({"val": at, "size": bytes, "filename": file.to_string_lossy()});
        self.execute("pmemsave", arguments)
    }

    /// Stops the machine: its CPUs and their counters stand.
    pub fn stop(&mut self) -> io::Result<()> {
        self.execute("stop", json!({}))
    }

    /// Lets a stopped machine run on.
    pub fn resume(&mut self) -> io::Result<()> {
        self.execute("cont", json!({}))
    }

    /// Whether the machine runs, and if not why, in QEMU's words (`running`, `paused`, `io-error`).
    pub fn status(&mut self) -> io::Result<String> {
        let status = self.ask("query-status", json!({}))?;
        Ok(status["status"].as_str().unwrap_or_default().into())
    }

    /// Gives the disk of that number, by their order, another size.
    pub fn resize_disk(&mut self, number: usize, bytes: u64) -> io::Result<()> {
        let arguments = json!({"node-name": format!("disk{number}"), "size": bytes});
        self.execute("block_resize", arguments)
    }

    /// Has that disk, which is of virtio, do so many requests of 512 bytes a second, longer ones for so much
    /// longer; 0 for as many as it can.
    pub fn throttle_disk(&mut self, number: usize, requests: u64) -> io::Result<()> {
        let backend = format!("/machine/peripheral/drive{number}/virtio-backend");
        let mut arguments = json!({"id": backend, "iops": requests});
        for limit in ["bps", "bps_rd", "bps_wr", "iops_rd", "iops_wr"] {
            arguments[limit] = json!(0);
        }
        if requests != 0 {
            arguments["iops_size"] = json!(512);
        }
        self.execute("block_set_io_throttle", arguments)
    }

    fn execute(&mut self, command: &str, arguments: Value) -> io::Result<()> {
        self.ask(command, arguments).map(drop)
    }

    fn ask(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        let request = json!({"execute": command, "arguments": arguments});
        writeln!(self.writer, "{request}")?;
        loop {
            let answer = self.read_object()?;
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(format!("QEMU refuses {command}: {error}")));
            }
            // Events come in between.
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
        }
    }

    fn read_object(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}
