//! Rust.

use super::table;

#[test]
fn tls_verification_off() {
    table(
        "src/client.rs",
        "tls-verification-off",
        &[
            "fn f() { let c = Client::builder().danger_accept_invalid_certs(true).build(); }\n",
            "fn f() { builder = builder.danger_accept_invalid_hostnames(true); }\n",
            "fn f() { connector.set_verify(SslVerifyMode::NONE); }\n",
        ],
        &[
            "fn f() { Client::builder().danger_accept_invalid_certs(false).build(); }\n",
            "fn f() { Client::builder().danger_accept_invalid_certs(self.insecure).build(); }\n",
            "// Client::builder().danger_accept_invalid_certs(true)\n",
            "const S: &str = \"danger_accept_invalid_certs(true)\";\n",
            "fn f() { if insecure { builder = builder.danger_accept_invalid_certs(true); } }\n",
            "fn danger_accept_invalid_certs(on: bool) { self.on = true; }\n",
            "#[cfg(test)]\nmod tests { fn f() { b.danger_accept_invalid_certs(true); } }\n",
            "fn f() { connector.set_verify(SslVerifyMode::PEER); }\n",
        ],
    );
}

#[test]
fn shell_from_data() {
    table(
        "src/run.rs",
        "shell-from-data",
        &[
            "fn f(d: &str) { Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", d)).spawn(); }\n",
            "fn f(d: &str) { Command::new(\"bash\").arg(\"-c\").arg(&format!(\"ls {d}\")); }\n",
            "fn f(d: &str) {\n    let line = format!(\"ls {d}\");\n    Command::new(\"/bin/sh\")\n        .arg(\"-c\")\n        .arg(&line)\n        .spawn();\n}\n",
        ],
        &[
            "// Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", d))\n",
            "const S: &str = r#\"Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", d))\"#;\n",
            "fn f() { Command::new(\"sh\").arg(\"-c\").arg(\"ls -l\"); }\n",
            "fn f(s: &str) { Command::new(\"sh\").arg(\"-c\").arg(s); }\n",
            "fn f(d: &str) { Command::new(\"ls\").arg(format!(\"{d}/x\")); }\n",
            "fn f(n: &str) { Command::new(\"git\").arg(\"-c\").arg(format!(\"user.name={n}\")); }\n",
            "fn f() { Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", DIR)); }\n",
            "fn f(d: &str) { Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", shell_escape(d))); }\n",
            "#[test]\nfn f() { Command::new(\"sh\").arg(\"-c\").arg(format!(\"ls {}\", d)); }\n",
        ],
    );
}

#[test]
fn sql_from_data() {
    table(
        "src/store.rs",
        "sql-from-data",
        &[
            "fn f(n: &str) { sqlx::query(&format!(\"SELECT * FROM t WHERE name = '{}'\", n)); }\n",
            "fn f(n: &str) { sqlx::query_as::<_, T>(&format!(\"SELECT * FROM t WHERE name = '{n}'\")); }\n",
            "fn f(n: &str) { let q = format!(\"DELETE FROM t WHERE id = {n}\"); conn.execute(&q, []); }\n",
            "fn f(n: &str) { diesel::sql_query(format!(\"UPDATE t SET a = '{}'\", n)); }\n",
        ],
        &[
            "// sqlx::query(&format!(\"SELECT * FROM t WHERE name = '{}'\", n))\n",
            "const S: &str = \"query(&format!(SELECT * FROM t WHERE name = '{}'\";\n",
            "fn f(n: &str) { sqlx::query(\"SELECT * FROM t WHERE name = $1\").bind(n); }\n",
            "fn f(t: &str) { sqlx::query(&format!(\"SELECT * FROM {table}\")); }\n",
            "fn f() { conn.execute(&format!(\"SELECT * FROM t WHERE id = {}\", MAX_ID), []); }\n",
            "fn f(w: &str) { conn.prepare(&format!(\"SELECT * FROM t WHERE {where_clause}\")); }\n",
            "fn f(n: &str) { cache.query(&format!(\"name = '{n}'\")); }\n",
            "#[cfg(test)]\nmod tests { fn f() { conn.execute(&format!(\"SELECT * FROM t WHERE id = {n}\"), []); } }\n",
        ],
    );
}

#[test]
fn debug_print_left() {
    table(
        "src/lib.rs",
        "debug-print-left",
        &[
            "fn f(x: u8) -> u8 { dbg!(x) }\n",
            "fn f() { dbg!(); }\n",
            "fn f(x: u8) { let y = std::dbg!(x * 2); }\n",
        ],
        &[
            "// dbg!(x)\n",
            "const S: &str = \"dbg!(x)\";\n",
            "fn f(x: u8) { debug!(x); }\n",
            "/// Like `dbg!(x)`.\nfn dbg(x: u8) {}\n",
            "#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() { dbg!(1); }\n}\n",
            "#[test]\nfn f() { dbg!(1); }\n",
            "macro_rules! dbg { ($x:expr) => { $x } }\nfn f() { dbg!(1); }\n",
        ],
    );
}

#[test]
fn nan_comparison() {
    table(
        "src/num.rs",
        "nan-comparison",
        &[
            "fn f(x: f64) -> bool { x == f64::NAN }\n",
            "fn f(x: f32) -> bool { f32::NAN != x }\n",
            "fn f(x: f64) { if x == std::f64::NAN { return; } }\n",
        ],
        &[
            "fn f(x: f64) -> bool { x.is_nan() }\n",
            "fn f() -> f64 { f64::NAN }\n",
            "// x == f64::NAN\n",
            "const S: &str = \"x == f64::NAN\";\n",
            "fn f(x: f64) -> bool { x == f64::MAX }\n",
            "fn f() { let x = f64::NAN; }\n",
        ],
    );
}
