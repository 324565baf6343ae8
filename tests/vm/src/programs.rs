//! Any installed program, as a user has it: in the host's own files (`--host-root`), and from a container image of its
//! Debian package. Each row of the tables below is run both ways, under load, without a flag that docker would not need:
//! `-v` for its files and data, `-u` where the image says nothing of it. What is looked at is said in
//! `docs/programs.md`.
//!
//! A row's script is what an image has as its entry point. It ends in the program (`exec`), so that the program is
//! asked to end when the machine is, and its last words are looked for.

mod databases;
mod languages;
mod load;
mod services;
mod web;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Test;
use crate::debian_image::{self, BASE, Contents, quoted};
use crate::guest::{End, Guest, Setup, sietch, state_folder};
use crate::volume::Folder;
use crate::volumes::Volume;

/// Those of every run, with one CPU.
pub const TESTS_WITH_ONE: &[Test] = &[
    services::MOSQUITTO,
    services::UNBOUND,
    services::SSHD,
    web::PUMA,
    databases::REDIS,
];

/// Those of every run, with several CPUs.
pub const TESTS_WITH_SEVERAL: &[Test] = &[
    services::NAMED,
    services::VSFTPD,
    web::PHP,
    databases::POSTGRES,
];

/// The others.
pub const TESTS_LONG: &[Test] = &[
    services::SQUID,
    services::PROMETHEUS,
    services::ETCD,
    services::RABBITMQ,
    databases::MARIADB,
    databases::MEMCACHED,
    web::NGINX,
    web::HAPROXY,
    web::GUNICORN,
    web::UVICORN,
    web::STARMAN,
    web::NODE,
    languages::JAVA,
    languages::GO,
    languages::RUST,
    languages::ERLANG,
    languages::COMPILER,
    languages::GIT,
];

/// A program of Debian, and what is done with it.
struct Program {
    /// Packages of its image, with all that these need.
    packages: &'static [&'static str],
    /// Who it is; root if nobody is named.
    user: &'static str,
    /// Names and texts of files that lie in `/app`.
    files: &'static [(&'static str, &'static str)],
    /// What is built for `/app`: a file, or a folder of files.
    built: Option<fn() -> Result<PathBuf, String>>,
    /// Where it keeps data: a volume with a name.
    data: Option<&'static str>,
    /// Starts it.
    script: &'static str,
    /// Where it listens.
    port: u16,
    /// How it is known to be ready.
    ready: Ready,
    /// What it is asked for.
    load: fn(SocketAddr) -> Result<(), String>,
    /// What it says when it is asked to end, if anything.
    last_words: &'static str,
    /// What the command may complain of: what it asks for and does without.
    lacks: &'static [&'static str],
}

/// A program that only says what it is.
const PROGRAM: Program = Program {
    packages: &[],
    user: "",
    files: &[],
    built: None,
    data: None,
    script: "",
    port: 0,
    ready: Ready::Says(""),
    load: |_| Ok(()),
    last_words: "",
    lacks: &[],
};

/// When a program is ready for its load.
enum Ready {
    /// It has written these words.
    Says(&'static str),
    /// It answers these bytes at its port.
    Answers(&'static [u8]),
}

/// Emulated machines share a busy host, and Erlang compiles all that it loads.
const PATIENCE: Duration = Duration::from_secs(480);
/// Ends of programs that end by the signal which asks them to.
const ENDED_BY_TERM: i32 = 128 + 15;

impl Program {
    /// Runs it in the host's files, and from an image.
    fn run(&self, setup: &Setup) -> Result<(), String> {
        let app = Folder::new("program-app")?;
        self.fill(&app.0)?;
        let mut flags = vec![format!("-v={}:/app:ro", app.0.display())];
        let started = ["--host-root", "-u", self.user, "sh", "-c", self.script];
        let started = match self.user {
            "" => [&started[..1], &started[3..]].concat(),
            _ => started.to_vec(),
        };
        self.run_once(setup, &flags, &started)
            .map_err(|why| format!("in the host's files: {why}"))?;
        let folder = Folder::new("program-image")?;
        let image = self.image(&folder.0.join("image"))?;
        flags.push("--rm".into());
        let result = self
            .run_once(setup, &flags, &[&image])
            .map_err(|why| format!("from an image: {why}"));
        // Disks of images are large, and the next program's is another one.
        let _ = sietch().args(["rmi", "image:latest"]).output();
        result
    }

    /// Makes its image, and says that one's name.
    fn image(&self, folder: &Path) -> Result<String, String> {
        let config = format!(
            r#"{{"User":{},"Entrypoint":["/bin/sh","-c",{}],"ExposedPorts":{{"{}/tcp":{{}}}}}}"#,
            quoted(self.user),
            quoted(self.script),
            self.port,
        );
        let contents = Contents {
            packages: &[BASE, self.packages].concat(),
            others: self.data.as_slice(),
            files: &[],
            config: &config,
        };
        debian_image::make(folder, &contents)
    }

    /// Writes what it finds in `/app`.
    fn fill(&self, app: &Path) -> Result<(), String> {
        let io = |error: std::io::Error| error.to_string();
        for (name, text) in self.files {
            fs::write(app.join(name), text).map_err(io)?;
        }
        let Some(build) = self.built else {
            return Ok(());
        };
        let built = build()?;
        let files: Vec<PathBuf> = match built.is_dir() {
            true => fs::read_dir(&built)
                .map_err(io)?
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.is_file())
                .collect(),
            false => vec![built],
        };
        for file in files {
            fs::copy(&file, app.join(file.file_name().unwrap_or_default())).map_err(io)?;
        }
        Ok(())
    }

    fn run_once(&self, setup: &Setup, flags: &[String], program: &[&str]) -> Result<(), String> {
        let volume = self.data.map(|_| Volume::unmade("program-data"));
        let data = self.data.map(|at| format!("-v=program-data:{at}"));
        let flags = flags.iter().chain(&data).map(String::as_str);
        let args: Vec<&str> = flags.chain(program.iter().copied()).collect();
        let (guest, address) = setup.serve(self.port, &args)?;
        self.wait(&guest, address)?;
        (self.load)(address).map_err(|why| guest.explain(&why))?;
        let end = guest.stop()?;
        self.check(&end)?;
        volume.map_or(Ok(()), |volume| volume.expect_clean())
    }

    fn wait(&self, guest: &Guest, address: SocketAddr) -> Result<(), String> {
        match self.ready {
            Ready::Says(words) => guest.expect(words, PATIENCE),
            Ready::Answers(ask) => guest.expect_answer(address, ask),
        }
    }

    /// Whether it ended as it was asked to, and got what it asked for.
    fn check(&self, end: &End) -> Result<(), String> {
        let is_lacking = |line: &&str| {
            line.contains("which Sietch lacks")
                && !self.lacks.iter().any(|known| line.contains(known))
        };
        let complaint = end.console.lines().find(is_lacking);
        let has_ended = matches!(end.status, 0 | ENDED_BY_TERM);
        match complaint {
            Some(complaint) => Err(complaint.into()),
            None if has_ended && end.console.contains(self.last_words) => Ok(()),
            None => Err(format!("status {}: {}", end.status, end.console)),
        }
    }
}
