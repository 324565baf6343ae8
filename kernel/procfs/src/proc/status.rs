//! What a process is and does: stat, status and smaller files (proc_pid_stat(5), ...).

use alloc::string::String;
use core::fmt::{Error, Result, Write};
use core::sync::atomic::Ordering::Relaxed;

use base::PAGE_BYTES;
use cred::{Account, Counted, Resource, UNLIMITED};
use sched::{Policy, State};
use task::signal::{Handler, Signal, SignalSet, pending_set};
use task::{Thread, Usage, family};

use super::guard;
use super::memory::Sums;
use super::task::Subject;
use vfs::pseudo::{Text, write_list, write_mask};

/// Clock ticks per second in all files of /proc (Linux's USER_HZ).
const TICKS_PER_SECOND: u64 = 100;
const NANOS_PER_TICK: u64 = 1_000_000_000 / TICKS_PER_SECOND;

/// The state's letter and its name.
fn state(subject: &Subject) -> (char, &'static str) {
    let Some(thread) = &subject.thread else {
        return ('Z', "zombie");
    };
    let tracee = thread.tracee();
    if tracee.is_some_and(|tracee| tracee.with_stopped(|_| ()).is_ok()) {
        return ('t', "tracing stop");
    }
    if subject.process.signals.is_stopped() {
        return ('T', "stopped");
    }
    match thread.sched.state() {
        State::Running | State::Notified | State::Awakened | State::Ready => ('R', "running"),
        State::Parking | State::Parked => ('S', "sleeping"),
        State::Dead => ('X', "dead"),
    }
}

fn name(subject: &Subject) -> String {
    let Some(thread) = &subject.thread else {
        return String::new();
    };
    let name = *thread.name.lock();
    let len = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    String::from_utf8_lossy(name.get(..len).unwrap_or(&[])).into_owned()
}

fn usage(subject: &Subject) -> Usage {
    match &subject.thread {
        Some(thread) if subject.is_thread() => Usage::of_thread(thread),
        _ => subject.process.usage(),
    }
}

/// Signals with this reaction.
fn reacting(subject: &Subject, matches: fn(&Handler) -> bool) -> u64 {
    let actions = subject.process.signals.actions.get();
    let chosen = (1..=Signal::MAX).filter_map(Signal::new);
    let chosen = chosen.filter(|signal| matches(&actions.get(*signal).handler));
    chosen.fold(SignalSet::EMPTY, SignalSet::with).0
}

fn ignored(subject: &Subject) -> u64 {
    reacting(subject, |handler| matches!(handler, Handler::Ignore))
}

fn caught(subject: &Subject) -> u64 {
    reacting(subject, |handler| matches!(handler, Handler::Function(_)))
}

/// /proc/PID/stat: 52 fields in one line.
pub fn stat(subject: &Subject, text: &mut Text) -> Result {
    let process = &subject.process;
    let pid = process.id();
    let (group, session) = (family::group_of(pid), family::session_of(pid));
    let parent = family::parent_of(pid);
    write!(
        text,
        "{} ({}) {} {parent} ",
        subject.id(),
        name(subject),
        state(subject).0
    )?;
    write!(
        text,
        "{} {} 0 -1 0 ",
        group.unwrap_or(0),
        session.unwrap_or(0)
    )?;
    let (own, children) = (usage(subject), process.children_usage());
    write!(text, "{} {} ", own.minor_faults, children.minor_faults)?;
    write!(text, "{} {} ", own.major_faults, children.major_faults)?;
    write!(
        text,
        "{} {} {} {} ",
        own.cpu.user_ns / NANOS_PER_TICK,
        own.cpu.system_ns / NANOS_PER_TICK,
        children.cpu.user_ns / NANOS_PER_TICK,
        children.cpu.system_ns / NANOS_PER_TICK
    )?;
    let nice = subject
        .thread
        .as_ref()
        .map_or(0, |thread| thread.sched.nice());
    let policy = subject
        .thread
        .as_ref()
        .map_or(Policy::Normal, |thread| thread.sched.class.policy());
    let priority = match policy.is_realtime() {
        true => -1 - i32::from(policy.priority()),
        false => 20 + i32::from(nice),
    };
    let threads = process.with_threads(<[_]>::len);
    let started = process.started.as_nanos() / NANOS_PER_TICK;
    write!(text, "{priority} {nice} {threads} 0 {started} ")?;
    stat_memory(subject, text)?;
    stat_signals(subject, text)?;
    let (arguments, environment) = match guard::check(subject) {
        Ok(()) => {
            let image = process.image.lock();
            (image.arguments, image.environment)
        }
        Err(_) => ((0, 0), (0, 0)),
    };
    write!(text, "0 0 0 {} {} ", arguments.0, arguments.1)?;
    writeln!(text, "{} {} 0", environment.0, environment.1)
}

/// vsize to kstkeip.
fn stat_memory(subject: &Subject, text: &mut Text) -> Result {
    let limit = subject.process.limits.soft(Resource::ResidentBytes);
    let stack = match guard::check(subject) {
        Ok(()) => subject.process.image.lock().stack_start,
        Err(_) => 0,
    };
    let (mapped, resident) = match &subject.thread {
        Some(_) => {
            let space = subject.process.space.get();
            (
                space.mapped_bytes(),
                space.resident_bytes() / PAGE_BYTES as u64,
            )
        }
        None => (0, 0),
    };
    write!(text, "{mapped} {resident} {limit} 0 0 {stack} 0 0 ")
}

/// /proc/PID/personality.
pub fn personality(subject: &Subject, text: &mut Text) -> Result {
    let thread = subject.thread.as_ref();
    let bits = thread.map_or(0, |thread| thread.personality.bits());
    writeln!(text, "{bits:08x}")
}

/// signal to cguest_time.
fn stat_signals(subject: &Subject, text: &mut Text) -> Result {
    let thread = subject.thread.as_deref();
    let pending = thread.map_or(0, |thread| pending_set(thread).0);
    let blocked = thread.map_or(0, |thread| thread.signals.mask().0);
    write!(
        text,
        "{pending} {blocked} {} {} ",
        ignored(subject),
        caught(subject)
    )?;
    let cpu = thread.map_or(0, |thread| thread.sched.last_cpu().0);
    let policy = thread.map_or(Policy::Normal, |thread| thread.sched.class.policy());
    let (priority, number) = (policy.priority(), policy.number());
    write!(text, "0 0 0 17 {cpu} {priority} {number} 0 0 0 ")
}

/// /proc/PID/status.
pub fn status(subject: &Subject, text: &mut Text) -> Result {
    let pid = subject.process.id();
    let (letter, word) = state(subject);
    writeln!(text, "Name:\t{}", name(subject))?;
    writeln!(
        text,
        "Umask:\t{:04o}",
        subject.thread.as_ref().map_or(0, |t| t.fs.get().umask())
    )?;
    writeln!(text, "State:\t{letter} ({word})")?;
    writeln!(text, "Tgid:\t{pid}\nNgid:\t0\nPid:\t{}", subject.id())?;
    let tracee = subject.thread.as_ref().and_then(|thread| thread.tracee());
    let (parent, tracer) = (
        family::parent_of(pid),
        tracee.map_or(0, |tracee| tracee.tracer),
    );
    writeln!(text, "PPid:\t{parent}\nTracerPid:\t{tracer}")?;
    if let Some(thread) = &subject.thread {
        status_ids(thread, text)?;
    }
    writeln!(text, "NStgid:\t{pid}\nNSpid:\t{}", subject.id())?;
    writeln!(text, "NSpgid:\t{}", family::group_of(pid).unwrap_or(0))?;
    writeln!(text, "NSsid:\t{}", family::session_of(pid).unwrap_or(0))?;
    status_memory(subject, text)?;
    writeln!(
        text,
        "Threads:\t{}",
        subject.process.with_threads(<[_]>::len)
    )?;
    status_signals(subject, text)?;
    let Some(thread) = &subject.thread else {
        return Ok(());
    };
    status_capabilities(thread, text)?;
    let affinity = thread.sched.affinity() & mach::cpu::all();
    let allowed = || affinity.iter().map(|cpu| cpu.index());
    let gains_nothing = u8::from(thread.no_new_privileges.load(Relaxed));
    let seccomp = thread.seccomp.get();
    writeln!(
        text,
        "NoNewPrivs:\t{gains_nothing}\nSeccomp:\t{}\nSeccomp_filters:\t{}",
        seccomp.number(),
        seccomp.filters()
    )?;
    text.push_str("Cpus_allowed:\t");
    write_mask(text, allowed(), mach::cpu::count())?;
    text.push_str("Cpus_allowed_list:\t");
    write_list(text, allowed())?;
    let nodes = mach::numa::nodes();
    text.push_str("Mems_allowed:\t");
    write_mask(text, 0..nodes, nodes)?;
    text.push_str("Mems_allowed_list:\t");
    write_list(text, 0..nodes)?;
    let (voluntary, forced) = thread.sched.switches();
    writeln!(text, "voluntary_ctxt_switches:\t{voluntary}")?;
    writeln!(text, "nonvoluntary_ctxt_switches:\t{forced}")
}

fn status_ids(thread: &Thread, text: &mut Text) -> Result {
    let credentials = thread.credentials.get();
    for (name, ids) in [("Uid", credentials.user), ("Gid", credentials.group)] {
        writeln!(
            text,
            "{name}:\t{}\t{}\t{}\t{}",
            ids.real, ids.effective, ids.saved, ids.fs
        )?;
    }
    writeln!(text, "FDSize:\t64")?;
    text.push_str("Groups:\t");
    for group in credentials.groups.iter() {
        write!(text, "{group} ")?;
    }
    writeln!(text)
}

fn status_memory(subject: &Subject, text: &mut Text) -> Result {
    if subject.thread.is_none() {
        return Ok(());
    }
    let space = subject.process.space.get();
    let (mapped, resident) = (space.mapped_bytes(), space.resident_bytes());
    let sums = Sums::of(&space);
    for (name, bytes) in [
        ("VmPeak", mapped),
        ("VmSize", mapped),
        ("VmLck", space.locked_bytes()),
        ("VmPin", 0),
        ("VmHWM", space.resident_bytes_max()),
        ("VmRSS", resident),
        ("RssAnon", resident),
        ("RssFile", 0),
        ("RssShmem", 0),
        ("VmData", sums.data),
        ("VmStk", sums.stack),
        ("VmExe", sums.text),
        ("VmLib", 0),
        ("VmPTE", space.table_bytes()),
        ("VmSwap", 0),
    ] {
        writeln!(text, "{name}:\t{:8} kB", bytes / 1024)?;
    }
    Ok(())
}

fn status_signals(subject: &Subject, text: &mut Text) -> Result {
    let thread = subject.thread.as_deref();
    let pending = thread.map_or(0, |thread| pending_set(thread).0);
    let blocked = thread.map_or(0, |thread| thread.signals.mask().0);
    let limit = subject.process.limits.soft(Resource::PendingSignals);
    let uid = thread.map_or(0, |thread| thread.credentials.with(|who| who.user.real));
    let queued = Account::of(uid).map_or(0, |account| account.count(Counted::Signals));
    writeln!(
        text,
        "SigQ:\t{queued}/{limit}\nSigPnd:\t{pending:016x}\nShdPnd:\t{:016x}",
        0
    )?;
    writeln!(
        text,
        "SigBlk:\t{blocked:016x}\nSigIgn:\t{:016x}",
        ignored(subject)
    )?;
    writeln!(text, "SigCgt:\t{:016x}", caught(subject))
}

fn status_capabilities(thread: &Thread, text: &mut Text) -> Result {
    let sets = thread.credentials.get().capabilities;
    for (name, set) in [
        ("CapInh", sets.inheritable),
        ("CapPrm", sets.permitted),
        ("CapEff", sets.effective),
        ("CapBnd", sets.bounding),
        ("CapAmb", sets.ambient),
    ] {
        writeln!(text, "{name}:\t{set:016x}")?;
    }
    Ok(())
}

/// /proc/PID/comm.
pub fn comm(subject: &Subject, text: &mut Text) -> Result {
    writeln!(text, "{}", name(subject))
}

/// /proc/PID/auxv: the vector's words as bytes.
pub fn auxv(subject: &Subject, text: &mut Text) -> Result {
    let auxv = subject.process.image.lock().auxv.clone();
    // Looked at afterwards: an exec exchanges the memory first.
    subject.space().map_err(|_| Error)?;
    for word in auxv.iter() {
        text.push_bytes(&word.to_ne_bytes());
    }
    Ok(())
}

/// /proc/PID/cgroup: there is one group for all.
pub fn cgroup(_subject: &Subject, text: &mut Text) -> Result {
    writeln!(text, "0::/")
}

/// /proc/PID/loginuid: nobody logged in.
pub fn loginuid(_subject: &Subject, text: &mut Text) -> Result {
    write!(text, "{}", u32::MAX)
}

/// /proc/PID/wchan: where it waits is not told.
pub fn wchan(_subject: &Subject, text: &mut Text) -> Result {
    text.push('0');
    Ok(())
}

/// /proc/PID/io: transfers are not counted.
pub fn io(_subject: &Subject, text: &mut Text) -> Result {
    let names = [
        "rchar",
        "wchar",
        "syscr",
        "syscw",
        "read_bytes",
        "write_bytes",
    ];
    names
        .iter()
        .try_for_each(|name| writeln!(text, "{name}: 0"))?;
    writeln!(text, "cancelled_write_bytes: 0")
}

/// Rows of /proc/PID/limits in the order of `Resource`: name and unit.
const LIMITS: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

/// /proc/PID/limits.
pub fn limits(subject: &Subject, text: &mut Text) -> Result {
    let heads = ["Limit", "Soft Limit", "Hard Limit"];
    writeln!(
        text,
        "{:<25} {:<20} {:<20} Units",
        heads[0], heads[1], heads[2]
    )?;
    for (number, (name, unit)) in (0..).zip(LIMITS) {
        let resource = Resource::from_number(number).ok_or(Error)?;
        let limit = subject.process.limits.get(resource);
        let (soft, hard) = (amount(limit.soft), amount(limit.hard));
        writeln!(text, "{name:<25} {soft:<20} {hard:<20} {unit:<10}")?;
    }
    Ok(())
}

fn amount(limit: u64) -> String {
    if limit == UNLIMITED {
        String::from("unlimited")
    } else {
        alloc::format!("{limit}")
    }
}
