//! What is mounted where (proc_pid_mounts(5), proc_pid_mountinfo(5)), as far as the program can
//! reach it from its root.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{Result, Write};

use super::task::Subject;
use vfs::mount::Propagation;
use vfs::pseudo::Text;
use vfs::{Mount, MountFlags, Path, device_parts, mount};

/// /proc/PID/mounts.
pub fn mounts(subject: &Subject, text: &mut Text) -> Result {
    each(subject, |mount, place| {
        escape(text, &mount.source);
        text.push(' ');
        escape(text, &place);
        let kind = mount.block.system.kind();
        let access = if mount.is_read_only() { "ro" } else { "rw" };
        writeln!(text, " {kind} {access}{} 0 0", options(mount))
    })
}

/// /proc/PID/mountinfo.
pub fn mountinfo(subject: &Subject, text: &mut Text) -> Result {
    each(subject, |mount, place| {
        let parent = mount.covers().map_or(mount.id, |covered| covered.mount.id);
        let metadata = mount.root.inode().metadata();
        let (major, minor) = device_parts(metadata.map_or(0, |metadata| metadata.device));
        write!(text, "{} {parent} {major}:{minor} ", mount.id)?;
        escape(text, &Path::top_of(mount).name_in_system());
        text.push(' ');
        escape(text, &place);
        let access = if mount.has(MountFlags::RDONLY) {
            "ro"
        } else {
            "rw"
        };
        let kind = mount.block.system.kind();
        write!(text, " {access}{}", options(mount))?;
        tell_propagation(mount, text)?;
        write!(text, " - {kind} ")?;
        escape(text, &mount.source);
        let whole = if mount.block.is_read_only() {
            "ro"
        } else {
            "rw"
        };
        writeln!(text, " {whole}")
    })
}

/// Whom the mount tells of changes, and who tells it.
fn tell_propagation(mount: &Mount, text: &mut Text) -> Result {
    let Propagation { group, master } = mount.propagation();
    if let Some(group) = group {
        write!(text, " shared:{}", group.number())?;
    }
    if let Some(master) = master {
        write!(text, " master:{}", master.number())?;
    }
    if mount.has(MountFlags::UNBINDABLE) {
        text.push_str(" unbindable");
    }
    Ok(())
}

/// Shows each mount that the program can reach, with its place.
fn each(subject: &Subject, mut show: impl FnMut(&Arc<Mount>, Vec<u8>) -> Result) -> Result {
    let Ok(thread) = subject.thread() else {
        return Ok(());
    };
    let root = thread.fs.get().root();
    let mut result = Ok(());
    mount::for_each(|mount| {
        if let Some(place) = Path::top_of(mount).name_below(&root)
            && result.is_ok()
        {
            result = show(mount, place);
        }
    });
    result
}

fn options(mount: &Mount) -> String {
    const NAMED: [(MountFlags, &str); 7] = [
        (MountFlags::NOSUID, ",nosuid"),
        (MountFlags::NODEV, ",nodev"),
        (MountFlags::NOEXEC, ",noexec"),
        (MountFlags::NOATIME, ",noatime"),
        (MountFlags::NODIRATIME, ",nodiratime"),
        (MountFlags::RELATIME, ",relatime"),
        (MountFlags::NOSYMFOLLOW, ",nosymfollow"),
    ];
    let set = NAMED.iter().filter(|(flag, _)| mount.has(*flag));
    set.map(|(_, name)| *name).collect()
}

/// Appends bytes with what separates fields written as an octal number.
fn escape(text: &mut Text, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b' ' => text.push_str("\\040"),
            b'\t' => text.push_str("\\011"),
            b'\n' => text.push_str("\\012"),
            b'\\' => text.push_str("\\134"),
            byte => text.push(char::from(*byte)),
        }
    }
}
