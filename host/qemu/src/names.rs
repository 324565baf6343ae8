//! Names of Rust functions as people say them.

/// `a::b<C>::d<E>` as `a::b::d`; the type in `<A as B>::c` stays.
pub fn without_parameters(name: &str) -> String {
    let mut short = String::new();
    let mut depth = 0_u32;
    let mut previous = ' ';
    for (at, character) in name.char_indices() {
        let is_type = at == 0 || (previous == ' ' && depth == 0);
        match character {
            '<' if !is_type => depth += 1,
            // An arrow closes nothing, and a type's bracket was never opened.
            '>' if previous != '-' && depth > 0 => depth -= 1,
            _ if depth == 0 => short.push(character),
            _ => {}
        }
        previous = character;
    }
    // `b::<C>` leaves a separator behind.
    let short = short.replace("::::", "::");
    short.trim_end_matches("::").to_string()
}

/// The name of an inlined function, which stands without its modules, with those that its file
/// has: `poll` of `kernel/vfs/src/file/poll.rs` is `vfs::file::poll::poll`.
pub fn qualified(name: &str, file: &str) -> String {
    let short = without_parameters(name);
    let Some((folder, modules)) = file.rsplit_once("/src/") else {
        return short;
    };
    let folder = folder.rsplit('/').next().unwrap_or("");
    let krate = folder.split("-0").next().unwrap_or(folder);
    let modules = modules.trim_end_matches(".rs").split('/');
    let modules = modules.filter(|module| !matches!(*module, "mod" | "lib"));
    let path: Vec<&str> = std::iter::once(krate).chain(modules).collect();
    format!("{}::{short}", path.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_parameters_are_left_out() {
        assert_eq!(without_parameters("lock<Option<Shard>>"), "lock");
        assert_eq!(without_parameters("a::b<C>::d::<E, F>"), "a::b::d");
        assert_eq!(
            without_parameters("<a::B<C> as d::E>::f"),
            "<a::B as d::E>::f"
        );
        assert_eq!(without_parameters("run<fn(u8) -> Vec<u8>>"), "run");
    }

    #[test]
    fn an_inlined_function_is_named_after_its_file() {
        let named = |file| qualified("poll<A>", file);
        assert_eq!(
            named("kernel/vfs/src/file/poll.rs"),
            "vfs::file::poll::poll"
        );
        assert_eq!(named("/x/core/inet/src/tcp/mod.rs"), "inet::tcp::poll");
        assert_eq!(
            named("/r/hashbrown-0.17.1/src/raw.rs"),
            "hashbrown::raw::poll"
        );
        assert_eq!(named("/rustc/1/library/core/src/lib.rs"), "core::poll");
        assert_eq!(named("x.rs"), "poll");
    }
}
