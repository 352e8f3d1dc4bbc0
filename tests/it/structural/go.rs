//! Go.

use super::table;

fn in_function(body: &str) -> String {
    format!("package main\n\nfunc run() {{\n\t{body}\n}}\n")
}

fn bodies(path: &str, rule: &str, positives: &[&str], look_alikes: &[&str]) {
    let positives: Vec<String> = positives.iter().map(|body| in_function(body)).collect();
    let look_alikes: Vec<String> = look_alikes.iter().map(|body| in_function(body)).collect();
    table(
        path,
        rule,
        &positives.iter().map(String::as_str).collect::<Vec<_>>(),
        &look_alikes.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn tls_verification_off() {
    bodies(
        "client.go",
        "tls-verification-off",
        &[
            "t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}",
            "config.InsecureSkipVerify = true",
            "c := tls.Config{\n\t\tMinVersion: tls.VersionTLS12,\n\t\tInsecureSkipVerify: true,\n\t}",
        ],
        &[
            "// tls.Config{InsecureSkipVerify: true}",
            "s := \"InsecureSkipVerify: true\"",
            "c := tls.Config{InsecureSkipVerify: false}",
            "c := tls.Config{InsecureSkipVerify: opts.Insecure}",
            "if opts.Insecure {\n\t\tconfig.InsecureSkipVerify = true\n\t}",
            "c := tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: verify}",
            "insecureClient := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}",
            "switch mode := o[\"sslmode\"]; mode {\n\tcase \"require\":\n\t\tconfig.InsecureSkipVerify = true\n\t}",
            "if config.InsecureSkipVerify == true {\n\t\twarn()\n\t}",
        ],
    );
    bodies(
        "client_test.go",
        "tls-verification-off",
        &[],
        &["config.InsecureSkipVerify = true"],
    );
}

#[test]
fn ssh_host_key_unchecked() {
    bodies(
        "dial.go",
        "ssh-host-key-unchecked",
        &[
            "c := &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}",
            "config.HostKeyCallback = ssh.InsecureIgnoreHostKey()",
            "callback := ssh.InsecureIgnoreHostKey()",
        ],
        &[
            "// HostKeyCallback: ssh.InsecureIgnoreHostKey()",
            "s := \"ssh.InsecureIgnoreHostKey()\"",
            "c := &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(key)}",
            "if insecure {\n\t\tcallback = ssh.InsecureIgnoreHostKey()\n\t}",
            "callback := fake.InsecureIgnoreHostKey()",
            "f := ssh.InsecureIgnoreHostKey",
        ],
    );
}

#[test]
fn shell_from_data() {
    bodies(
        "run.go",
        "shell-from-data",
        &[
            "exec.Command(\"sh\", \"-c\", \"ls \"+dir)",
            "exec.Command(\"bash\", \"-c\", fmt.Sprintf(\"git log %s\", branch)).Run()",
            "exec.CommandContext(ctx, \"/bin/sh\", \"-c\", \"ls \"+dir)",
            "line := \"ls \" + dir\n\texec.Command(\"sh\", \"-c\", line)",
        ],
        &[
            "// exec.Command(\"sh\", \"-c\", \"ls \"+dir)",
            "s := `exec.Command(\"sh\", \"-c\", \"ls \"+dir)`",
            "exec.Command(\"ls\", dir)",
            "exec.Command(\"sh\", \"-c\", \"ls -l\")",
            "exec.Command(\"sh\", \"-c\", script)",
            "exec.Command(\"git\", \"-c\", \"user.name=\"+name, \"commit\")",
            "exec.Command(\"sh\", \"-c\", fmt.Sprintf(\"kill %d\", p))",
            "const dir = \"build\"\n\texec.Command(\"sh\", \"-c\", \"ls \"+dir)",
            "exec.Command(\"sh\", \"-c\", \"ls \"+shellquote.Join(dir))",
        ],
    );
}

#[test]
fn sql_from_data() {
    bodies(
        "store.go",
        "sql-from-data",
        &[
            "db.Query(fmt.Sprintf(\"SELECT * FROM t WHERE name = '%s'\", name))",
            "db.QueryRowContext(ctx, \"SELECT id FROM t WHERE name = '\"+name+\"'\")",
            "q := fmt.Sprintf(\"DELETE FROM t WHERE id = %v\", id)\n\tdb.Exec(q)",
            "tx.ExecContext(ctx, fmt.Sprintf(`UPDATE t SET a = '%s'`, a))",
        ],
        &[
            "// db.Query(fmt.Sprintf(\"SELECT * FROM t WHERE name = '%s'\", name))",
            "s := `db.Query(\"SELECT * FROM t WHERE name = '\" + name)`",
            "db.Query(\"SELECT * FROM t WHERE name = $1\", name)",
            "db.Query(fmt.Sprintf(\"SELECT * FROM %s\", table))",
            "db.Query(fmt.Sprintf(\"SELECT * FROM t WHERE id = %d\", id))",
            "db.Query(\"SELECT * FROM t WHERE \"+where, args)",
            "db.Query(\"SELECT * FROM t WHERE id = \" + strconv.Itoa(id))",
            "const kind = \"'a'\"\n\tdb.Query(\"SELECT * FROM t WHERE kind = \" + kind)",
            "url.Query(\"select a = \" + b)\n\tclient.Exec(\"say x=\" + y)",
        ],
    );
}

#[test]
fn debugger_left() {
    bodies(
        "main.go",
        "debugger-left",
        &[
            "runtime.Breakpoint()",
            "if x {\n\t\truntime.Breakpoint()\n\t}",
            "defer runtime.Breakpoint()",
        ],
        &[
            "// runtime.Breakpoint()",
            "s := \"runtime.Breakpoint()\"",
            "debugger.Breakpoint()",
            "f := runtime.Breakpoint",
            "runtime.GC()",
            "x.runtime.Breakpoint()",
        ],
    );
}

#[test]
fn focused_test() {
    let source = |body: &str| {
        format!(
            "package a_test\n\nimport . \"github.com/onsi/ginkgo/v2\"\n\nvar _ = Describe(\"a\", func() {{\n\t{body}\n}})\n"
        )
    };
    let positives: Vec<String> = [
        "FIt(\"works\", func() {})",
        "FDescribe(\"a\", func() {})",
        "ginkgo.FContext(\"a\", func() {})",
        "FEntry(\"one\", 1)",
    ]
    .map(source)
    .to_vec();
    let look_alikes: Vec<String> = [
        "// FIt(\"works\", func() {})",
        "s := \"FIt(\"",
        "It(\"works\", func() {})",
        "PIt(\"works\", func() {})",
        "model.FFit(\"a\")",
        "type FIt struct{}",
    ]
    .map(source)
    .to_vec();
    let positives: Vec<&str> = positives.iter().map(String::as_str).collect();
    let mut look_alikes: Vec<&str> = look_alikes.iter().map(String::as_str).collect();
    look_alikes.push("package a_test\n\nfunc f() {\n\tFIt(\"no ginkgo here\", 1)\n}\n");
    table("a_test.go", "focused-test", &positives, &look_alikes);
}

#[test]
fn nan_comparison() {
    bodies(
        "num.go",
        "nan-comparison",
        &[
            "if x == math.NaN() {\n\t\treturn\n\t}",
            "ok := math.NaN() != y",
            "if v != math.NaN() && v > 0 {\n\t\treturn\n\t}",
        ],
        &[
            "if math.IsNaN(x) {\n\t\treturn\n\t}",
            "x := math.NaN()",
            "x = math.NaN()",
            "// x == math.NaN()",
            "s := \"x == math.NaN()\"",
            "if math.NaN() == math.NaN() {\n\t\treturn\n\t}",
            "if x != x {\n\t\treturn\n\t}",
        ],
    );
}
