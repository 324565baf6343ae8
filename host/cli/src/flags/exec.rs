//! Commands for machines that run: `exec` and `kill`.

use clap::Args;

use super::User;

/// `sietch exec`.
#[derive(Debug, Args)]
pub struct ExecFlags {
    /// Keep standard input open
    #[arg(short = 'i', long)]
    pub interactive: bool,
    /// Give the command a terminal
    #[arg(short = 't', long)]
    pub tty: bool,
    /// Run the command in the background
    #[arg(short = 'd', long)]
    pub detach: bool,
    /// Set an environment variable; NAME alone takes the host's value
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// The command's working folder [default: that of the machine's program]
    #[arg(short = 'w', long = "workdir", value_name = "FOLDER")]
    pub folder: Option<String>,
    /// Run the command as this user [default: that of the machine's program]
    #[arg(short = 'u', long = "user", value_name = "USER[:GROUP]")]
    pub user: Option<User>,
    /// The machine
    pub name: String,
    /// The program in the machine, a path or a name to search, and its arguments
    #[arg(
        value_name = "COMMAND [ARGS]",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
}

/// `sietch kill`.
#[derive(Debug, Args)]
pub struct KillFlags {
    /// The signal for the machine's program: a name or a number
    #[arg(short = 's', long, default_value = "KILL")]
    pub signal: String,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}
