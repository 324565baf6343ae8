//! How an image's program starts: what the image says, and what the command line says otherwise, as with docker.

use images::{Error, Process, Root};

use crate::failure::Failure;
use crate::flags::RunFlags;

/// Where programs are searched if the image does not say.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the kernel is told of the program, but for what is the machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// `argv`.
    pub arguments: Vec<String>,
    /// `NAME=VALUE`.
    pub environment: Vec<String>,
    /// The working folder.
    pub folder: String,
    /// User and group; root if there is none.
    pub user: Option<(u32, u32)>,
    /// Ports that the program listens at, as `6379/tcp`.
    pub exposed: Vec<String>,
}

impl Start {
    /// Of the image `name`.
    pub(super) fn new(
        flags: &RunFlags,
        name: &str,
        process: &Process,
        root: &Root,
    ) -> Result<Self, Failure> {
        let arguments = arguments(
            process,
            flags.entrypoint.as_deref(),
            flags.program.arguments(),
        );
        if arguments.is_empty() {
            return Err(Error::NoProgram { name: name.into() }.into());
        }
        let wanted = flags.program.user.as_deref().unwrap_or(&process.user);
        let account = root.account(wanted)?;
        let folder = flags
            .program
            .folder
            .as_deref()
            .unwrap_or(&process.working_dir);
        Ok(Self {
            arguments,
            environment: environment(process, &account.home),
            folder: if folder.is_empty() { "/" } else { folder }.into(),
            user: Some((account.uid, account.gid)).filter(|&who| who != (0, 0)),
            exposed: process.exposed_ports.keys().cloned().collect(),
        })
    }

    /// Its program, as typed by whoever made the image.
    pub fn program(&self) -> &str {
        self.arguments.first().map_or("", String::as_str)
    }

    /// A sentence for whoever does not see the program's ports from outside.
    pub fn hint(&self, flags: &RunFlags) -> Option<String> {
        let is_led = |port: &str| {
            let published = flags
                .publish
                .iter()
                .map(|publish| publish.0.guest_port.to_string());
            published.into_iter().any(|led| led == port)
        };
        let number = |exposed: &str| exposed.split('/').next().unwrap_or(exposed).to_string();
        let mut hidden = self
            .exposed
            .iter()
            .filter(|exposed| !is_led(&number(exposed)));
        let first = number(hidden.next()?);
        let all = self.exposed.join(", ");
        Some(format!(
            "The image exposes {all}, and not all of it is published: -p {first}:{first} leads there."
        ))
    }
}

/// The entry point, and behind it the command line's arguments or else the image's. Another entry point takes the
/// image's arguments away, an empty one only itself.
fn arguments(process: &Process, entrypoint: Option<&str>, typed: &[String]) -> Vec<String> {
    let (mut arguments, usual) = match entrypoint {
        None => (process.entrypoint.clone(), process.cmd.as_slice()),
        Some("") => (Vec::new(), [].as_slice()),
        Some(other) => (vec![other.to_string()], [].as_slice()),
    };
    let further = if typed.is_empty() { usual } else { typed };
    arguments.extend(further.iter().cloned());
    arguments
}

fn environment(process: &Process, home: &str) -> Vec<String> {
    let has = |name: &str| process.env.iter().any(|word| word.starts_with(name));
    let path = (!has("PATH=")).then(|| PATH.to_string());
    let home = (!has("HOME=")).then(|| format!("HOME={home}"));
    process
        .env
        .iter()
        .cloned()
        .chain(path)
        .chain(home)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Process {
        Process {
            entrypoint: vec!["/entry".into()],
            cmd: vec!["serve".into(), "-v".into()],
            env: vec!["PATH=/bin".into()],
            ..Process::default()
        }
    }

    #[test]
    fn arguments_replace_the_images_own_and_not_its_entry_point() {
        let of = |entrypoint: Option<&str>, typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
            arguments(&process(), entrypoint, &typed).join(" ")
        };
        assert_eq!(of(None, &[]), "/entry serve -v");
        assert_eq!(of(None, &["x"]), "/entry x");
        assert_eq!(of(Some("sh"), &[]), "sh");
        assert_eq!(of(Some("sh"), &["-c", "x"]), "sh -c x");
        assert_eq!(of(Some(""), &["sh"]), "sh");
    }

    #[test]
    fn what_the_image_says_of_the_environment_comes_before_what_is_usual() {
        assert_eq!(
            environment(&process(), "/data"),
            ["PATH=/bin", "HOME=/data"]
        );
        assert_eq!(environment(&Process::default(), "/")[0], PATH);
    }

    #[test]
    fn a_port_that_is_exposed_and_not_published_is_hinted_at() {
        let start = Start {
            exposed: vec!["6379/tcp".into()],
            ..Start::default()
        };
        let hint = |line: &[&str]| start.hint(&RunFlags::of_line(line.iter().copied()).unwrap());
        let hidden = hint(&["sietch", "run", "redis"]).unwrap();
        assert!(hidden.contains("-p 6379:6379"), "{hidden}");
        assert_eq!(hint(&["sietch", "run", "-p", "1:6379", "redis"]), None);
    }
}
