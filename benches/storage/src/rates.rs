//! What is measured by the host's clock: bandwidth, transactions and SETs a second.

use std::path::Path;
use std::time::Instant;

use bench_pair::{Better, System, Table, dynamic};

use crate::disk::{Bus, Cache, Disk};
use crate::failures::Failures;
use crate::load::{self, Field};
use crate::redis::Way;
use crate::shell::Shell;
use crate::{postgres, redis, sqlite};

/// A row, or what gives several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Device,
    Append,
    /// By libsietch.so on a log?
    Threads(bool),
    Sequential,
    Sqlite(sqlite::Mode),
    Redis(Way, u32),
    Postgres,
}

impl Row {
    /// In the order of the page.
    const ALL: [Self; 14] = [
        Self::Device,
        Self::Append,
        Self::Threads(false),
        Self::Threads(true),
        Self::Sequential,
        Self::Sqlite(sqlite::Mode::Wal),
        Self::Sqlite(sqlite::Mode::Delete),
        Self::Postgres,
        Self::Redis(Way::ALL[0], 1),
        Self::Redis(Way::ALL[0], 50),
        Self::Redis(Way::ALL[1], 1),
        Self::Redis(Way::ALL[1], 50),
        Self::Redis(Way::ALL[2], 1),
        Self::Redis(Way::ALL[2], 50),
    ];

    fn name(self) -> String {
        match self {
            Self::Device => "4 KiB and a flush on the disk itself, /s".into(),
            Self::Append => "append of 4 KiB and `fsync` on ext4, /s".into(),
            Self::Threads(is_on_log) => load::threads_name(is_on_log).into(),
            Self::Sequential => "sequential".into(),
            Self::Sqlite(mode) => format!("{}, transactions/s", mode.name()),
            Self::Redis(way, clients) => format!("{}, SET/s", way.name(clients)),
            Self::Postgres => format!("pgbench, {} clients, transactions/s", postgres::CLIENTS),
        }
    }
}

/// How long each row takes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Of what has no end.
    pub seconds: u32,
    /// Transactions and SETs of one client, where a flush costs nothing; a fourth where it costs.
    pub count: u32,
}

/// The machine of a round, and where its figures go.
pub struct Place<'a> {
    pub system: System,
    pub bus: Bus,
    pub cache: Cache,
    pub effort: Effort,
    /// What is on the disk with ext4.
    pub files: &'a Path,
    pub table: &'a mut Table,
    pub failures: &'a mut Failures,
}

impl Place<'_> {
    /// The row's name in the table.
    fn named(&self, row: &str) -> String {
        format!("{}, `{}`, {row}", self.bus.name(), self.cache.name())
    }

    /// Measures all rows that `is_wanted` names.
    ///
    /// Errors: the machine does not start.
    pub fn measure(&mut self, is_wanted: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let rows = Row::ALL
            .into_iter()
            .filter(|row| is_wanted(&self.named(&row.name())));
        let rows: Vec<Row> = rows.collect();
        if rows.is_empty() {
            return Ok(());
        }
        let raw = Disk::new(self.cache, None)?;
        let ext4 = Disk::new(self.cache, Some(self.files))?;
        let mut programs: Vec<String> = [load::PROGRAM, sqlite::PROGRAM]
            .iter()
            .map(|program| format!("{program}:{program}"))
            .collect();
        programs.push(format!("{}:/bin/appenders", dynamic(load::APPENDERS)?));
        programs.extend(redis::additions()?);
        programs.extend(postgres::additions()?);
        let disks = [raw.flag(self.bus), ext4.flag(self.bus)];
        let mut shell = Shell::fast(self.system, &disks, &programs)?;
        shell.mount(self.system, self.bus)?;
        for row in rows {
            if let Err(why) = self.row(&mut shell, row) {
                let name = self.named(&row.name());
                self.failures.add(self.system, &name, &why);
            }
        }
        Ok(())
    }

    fn add(&mut self, row: &str, better: Better, figure: f64) {
        let name = self.named(row);
        self.table.add(&name, better, self.system, figure);
    }

    /// A rate, and what one of so many cost the machine.
    fn add_rate(&mut self, row: &str, rate: f64, count: f64, cpu_s: f64) {
        self.add(row, Better::More, rate);
        let what = row.rsplit_once(", ").map_or(row, |(what, _)| what);
        let row = format!("{what}, CPU time each, µs");
        self.add(&row, Better::Less, cpu_s * 1e6 / count);
    }

    fn row(&mut self, shell: &mut Shell, row: Row) -> Result<(), String> {
        match row {
            Row::Sequential => return self.sequential(shell),
            Row::Redis(way, clients) => return self.redis(shell, way, clients),
            Row::Postgres => postgres::start(shell)?,
            Row::Sqlite(mode) => mode.start(shell, self.transactions())?,
            Row::Device | Row::Append | Row::Threads(_) => {}
        }
        let seconds = self.effort.seconds;
        let (before_s, start) = (shell.cpu_s(), Instant::now());
        let rate = match row {
            Row::Device => {
                let command = load::device_for(shell.raw_disk(), seconds);
                Field::Writes.of(&shell.run(&command)?)?
            }
            Row::Append => Field::Writes.of(&shell.run(&load::appends_for(seconds))?)?,
            Row::Threads(is_on_log) => {
                let disk = shell.raw_disk().to_string();
                let said = shell.run(&load::threads(&disk, is_on_log, self.count()))?;
                load::appends_said(&said)?
            }
            Row::Postgres => postgres::rate(2 * seconds)?,
            Row::Sqlite(_) => sqlite::rate(shell, self.transactions())?,
            Row::Sequential | Row::Redis(..) => 0.0,
        };
        let (cpu_s, elapsed_s) = (shell.cpu_s() - before_s, start.elapsed().as_secs_f64());
        match row {
            Row::Postgres => postgres::stop(shell)?,
            Row::Sqlite(_) => sqlite::stop(shell)?,
            _ => {}
        }
        self.add_rate(&row.name(), rate, rate * elapsed_s, cpu_s);
        Ok(())
    }

    /// Transactions of SQLite.
    fn transactions(&self) -> u32 {
        4 * self.count()
    }

    /// SETs: enough for about a second, of which connecting is no part worth naming.
    fn sets(&self, clients: u32) -> u32 {
        match clients {
            1 => 4 * self.count(),
            _ => 40 * self.count(),
        }
    }

    /// Appends of a thread.
    fn count(&self) -> u32 {
        match self.cache {
            Cache::Unsafe => self.effort.count,
            Cache::Writeback => self.effort.count / 4,
        }
    }

    fn sequential(&mut self, shell: &mut Shell) -> Result<(), String> {
        let mb_s = |field: Field, said: &str| Ok::<_, String>(field.of(said)? * 1024.0 / 1e6);
        let mb = f64::from(load::SEQUENTIAL_MIB) * 1.048576;
        let before_s = shell.cpu_s();
        let written = mb_s(Field::Write, &shell.run(&load::sequential("write"))?)?;
        let cpu_s = shell.cpu_s() - before_s;
        self.add_rate("sequential write and fsync, MB/s", written, mb, cpu_s);
        // What was cached is read from the disk again.
        shell.run("busybox umount /mnt")?;
        shell.mount_again()?;
        let before_s = shell.cpu_s();
        let read = mb_s(Field::Read, &shell.run(&load::sequential("read"))?)?;
        let cpu_s = shell.cpu_s() - before_s;
        self.add_rate("sequential read, MB/s", read, mb, cpu_s);
        Ok(())
    }

    fn redis(&mut self, shell: &mut Shell, way: Way, clients: u32) -> Result<(), String> {
        way.start(shell)?;
        let count = self.sets(clients);
        redis::set(way, clients, count / 4)?;
        let before_s = shell.cpu_s();
        let answers = redis::set(way, clients, count)?;
        let cpu_s = shell.cpu_s() - before_s;
        let row = Row::Redis(way, clients).name();
        self.add_rate(&row, answers.rate, f64::from(count), cpu_s);
        let name = way.name(clients);
        for (share, ms) in ["p50", "p99", "p99.9"].iter().zip(answers.percentiles_ms) {
            self.add(&format!("{name}, {share}, ms"), Better::Less, ms);
        }
        Ok(())
    }
}
