//! What `sietch run --from` takes beside it.
//!
//! A machine that goes on from a snapshot has its program, memory and devices already, so most flags would do nothing. Those
//! that do something are listed; any other that is typed is refused. Defaults of the user's own ([`crate::defaults`]) are for
//! machines that have a choice: nobody typed them, and here they say nothing.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory};

use super::Cli;
use crate::failure::Failure;

/// clap's names for the flags.
const TAKEN: [&str; 48] = [
    "from",
    "publish",
    "name",
    "detach",
    "rm",
    "rmi",
    "profile",
    "off_cpu",
    // Its life.
    "restart",
    "stop_signal",
    "stop_timeout",
    "timeout",
    "replace",
    "label",
    "label_file",
    "annotation",
    "cidfile",
    "pidfile",
    "conmon_pidfile",
    "oom_score_adj",
    "cpuset_cpus",
    // Its health.
    "health_cmd",
    "health_interval",
    "health_retries",
    "health_timeout",
    "health_start_period",
    "health_start_interval",
    "health_max_log_count",
    "health_max_log_size",
    "health_startup_cmd",
    "health_startup_interval",
    "health_startup_retries",
    "health_startup_success",
    "health_startup_timeout",
    "health_on_failure",
    "no_healthcheck",
    // What is so in any case.
    "init",
    "sig_proxy",
    "ipc",
    "pid",
    "uts",
    "platform",
    "arch",
    "os",
    "image_volume",
    "log_driver",
    "quiet",
    // For who attaches.
    "interactive",
];

/// Checks a line that was parsed.
///
/// Errors: a flag of `sietch run` that is typed beside `--from`, and would do nothing.
pub fn check(line: &ArgMatches) -> Result<(), Failure> {
    let Some(typed) = line.subcommand_matches("run") else {
        return Ok(());
    };
    let is_typed = |id: &str| typed.value_source(id) == Some(ValueSource::CommandLine);
    if !is_typed("from") {
        return Ok(());
    }
    let is_refused = |arg: &Arg| {
        let id = arg.get_id().as_str();
        !TAKEN.contains(&id) && is_typed(id)
    };
    match arguments().into_iter().find(is_refused) {
        Some(arg) => Err(Failure::NotWithFrom { flag: shown(&arg) }),
        None => Ok(()),
    }
}

/// Those of `sietch run`.
fn arguments() -> Vec<Arg> {
    let grammar = Cli::command();
    let run = grammar.find_subcommand("run");
    let arguments = run.into_iter().flat_map(|run| run.get_arguments());
    arguments.cloned().collect()
}

fn shown(arg: &Arg) -> String {
    format!("--{}", arg.get_long().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn refused(line: &str) -> Option<String> {
        let words = ["sietch", "run", "--from", "x"].into_iter();
        let matches = Cli::command()
            .try_get_matches_from(words.chain(line.split_whitespace()))
            .unwrap();
        check(&matches).err().map(|failure| failure.to_string())
    }

    #[test]
    fn each_name_is_a_flags() {
        let known = arguments();
        for id in TAKEN {
            assert!(known.iter().any(|arg| arg.get_id() == id), "{id}");
        }
    }

    #[test]
    fn a_flag_that_does_nothing_is_refused_and_no_other() {
        let switches = arguments()
            .into_iter()
            .filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
        for arg in switches {
            let is_alone = !["off_cpu", "replace"].contains(&arg.get_id().as_str());
            if is_alone {
                let is_taken = TAKEN.contains(&arg.get_id().as_str());
                assert_eq!(refused(&shown(&arg)).is_none(), is_taken, "{}", shown(&arg));
            }
        }
    }

    #[test]
    fn a_flag_with_a_value_is_refused_too() {
        for line in [
            "--cap-drop ALL",
            "--ulimit nofile=1:2",
            "--sysctl a=b",
            "--security-opt no-new-privileges",
            "--mount type=tmpfs,target=/x",
            "--tmpfs /x",
            "--volumes-from other",
            "--env-file x",
            "--hostname x",
            "--dns 1.2.3.4",
            "--network-alias x",
            "--memory 64M",
            "--net none",
            "--profile-ring 64",
        ] {
            let flag = line.split(' ').next().unwrap();
            let sentence = refused(line).unwrap();
            assert!(sentence.contains(flag), "{sentence}");
        }
        assert_eq!(
            refused("-d -p 80:80 --name y --restart always -l a=b"),
            None
        );
    }

    #[test]
    fn a_default_is_not_typed() {
        // Any variable that is set will do.
        let grammar = Cli::command().mut_subcommand("run", |run| {
            run.mut_arg("hostname", |arg| arg.env("PATH"))
                .mut_arg("memory", |arg| arg.default_value("64M"))
        });
        let line = grammar.try_get_matches_from(["sietch", "run", "--from", "x"]);
        assert!(check(&line.unwrap()).is_ok());
    }
}
