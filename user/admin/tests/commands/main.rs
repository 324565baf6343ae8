//! `dladm` and `flowadm` against the link layer over a simulated card: each command goes
//! through its arguments, the byte encoding and the device file's protocol. Tests are
//! sentences; `docs/dladm.md` says which check each answers.
#![forbid(unsafe_code)]

mod arguments;
mod figures;
mod filters;
mod flows;
mod kstat;
mod link_kstats;
mod links;
mod netstat;
mod props;
mod protection;
mod restart;
mod statistics;

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use admin::{Console, Device, World};
use link::LinkId;
use linkctl::answer_to;
use sim::lan::{Card, Lan, Machine};
use wire::MacAddr;

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);

/// The device file, open.
struct File {
    machine: Rc<RefCell<Machine>>,
    answer: Vec<u8>,
}

impl Write for File {
    fn write(&mut self, request: &[u8]) -> io::Result<usize> {
        let mut machine = self.machine.borrow_mut();
        let rights = machine.rights;
        self.answer = answer_to(request, rights, &mut *machine);
        Ok(request.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for File {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let answer = std::mem::take(&mut self.answer);
        into[..answer.len()].copy_from_slice(&answer);
        Ok(answer.len())
    }
}

/// What a command said, and what happens while it waits.
struct Recorder<'a> {
    out: String,
    err: String,
    /// Called with the seconds of each wait; false ends the command.
    meanwhile: &'a mut dyn FnMut(u32) -> bool,
}

impl Console for Recorder<'_> {
    fn print(&mut self, text: &str) -> bool {
        self.out += text;
        true
    }

    fn is_terminal(&self) -> bool {
        false
    }

    fn complain(&mut self, text: &str) {
        self.err += text;
    }

    fn wait(&mut self, seconds: u32) -> bool {
        (self.meanwhile)(seconds)
    }
}

/// A machine and a place for what outlasts its restarts.
struct Host {
    machine: Rc<RefCell<Machine>>,
    root: PathBuf,
}

static HOSTS: AtomicU32 = AtomicU32::new(0);

impl Drop for Host {
    fn drop(&mut self) {
        // Not every test keeps something.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn machine(card: Card) -> Machine {
    Machine::new(Lan::with_card(card).expect("a card"))
}

impl Host {
    fn new() -> Self {
        Self::with_card(Card::new(NIC.0, &[(2, 1), (1, 1)], true))
    }

    fn with_card(card: Card) -> Self {
        let number = HOSTS.fetch_add(1, Ordering::Relaxed);
        let name = format!("sietch-admin-{}-{number}", std::process::id());
        Self {
            machine: Rc::new(RefCell::new(machine(card))),
            root: std::env::temp_dir().join(name),
        }
    }

    /// The machine loses all that is not kept.
    fn restart(&mut self) {
        let card = Card::new(NIC.0, &[(2, 1), (1, 1)], true);
        self.machine = Rc::new(RefCell::new(machine(card)));
    }

    /// Looks at the network, or acts on it.
    fn lan<R>(&self, act: impl FnOnce(&mut Lan) -> R) -> R {
        act(&mut self.machine.borrow_mut().lan)
    }

    fn link(&self, name: &str) -> LinkId {
        self.lan(|lan| lan.links.find(name)).expect("a link")
    }

    /// Runs a command line; returns its exit code, output and complaints.
    fn run_while(
        &self,
        line: &str,
        meanwhile: &mut dyn FnMut(u32) -> bool,
    ) -> (u8, String, String) {
        let mut words: Vec<String> = line.split(' ').map(String::from).collect();
        let keeps_nothing = [
            "show-vlan",
            "show-etherstub",
            "show-filter",
            "delete-filter",
            "show-doorbell",
            "--help",
        ];
        if !matches!(words[0].as_str(), "kstat" | "linkdrop")
            && !keeps_nothing.contains(&words[1].as_str())
        {
            words.push(format!("--root-dir={}", self.root.display()));
        }
        let tool = match words[0].as_str() {
            "dladm" => admin::dladm::run,
            "ipadm" => admin::ipadm::run,
            "kstat" => admin::kstat::run,
            "linkdrop" => admin::linkdrop::run,
            _ => admin::flowadm::run,
        };
        let mut device = Device::new(File {
            machine: self.machine.clone(),
            answer: Vec::new(),
        });
        let mut console = Recorder {
            out: String::new(),
            err: String::new(),
            meanwhile,
        };
        let mut world = World {
            kernel: &mut device,
            files: &mut figures::Papers::of([("/proc/net/snmp", &[""])]),
            console: &mut console,
        };
        let code = tool(&words, &mut world);
        (code, console.out, console.err)
    }

    fn run(&self, line: &str) -> (u8, String, String) {
        self.run_while(line, &mut |_| false)
    }

    /// What a command that must succeed prints.
    #[track_caller]
    fn prints(&self, line: &str) -> String {
        let (code, out, err) = self.run(line);
        assert_eq!((code, err.as_str()), (0, ""), "{line}");
        out
    }

    /// What a command that must fail complains of.
    #[track_caller]
    fn fails(&self, line: &str) -> String {
        let (code, out, err) = self.run(line);
        assert_eq!((code, out.as_str()), (1, ""), "{line}: {err}");
        err
    }
}
