//! Several clients at once.

use std::thread;

/// Runs `client` that many times at once, with a number each; the first error if there is one.
pub fn together(
    count: usize,
    client: impl Fn(usize) -> Result<(), String> + Sync,
) -> Result<(), String> {
    thread::scope(|scope| {
        let client = &client;
        let clients: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || client(number)))
            .collect();
        let results = clients.into_iter().map(|client| {
            client
                .join()
                .unwrap_or_else(|_| Err("a client panicked".into()))
        });
        // All of them are waited for, and only then the errors are looked at.
        results.collect::<Vec<_>>().into_iter().collect()
    })
}
