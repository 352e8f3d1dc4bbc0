//! Java.

use super::table;

fn methods(path: &str, rule: &str, positives: &[&str], look_alikes: &[&str]) {
    let wrap = |bodies: &[&str]| -> Vec<String> {
        bodies
            .iter()
            .map(|body| format!("class Client {{\n  void run(String name) throws Exception {{\n    {body}\n  }}\n}}\n"))
            .collect()
    };
    let (positives, look_alikes) = (wrap(positives), wrap(look_alikes));
    table(
        path,
        rule,
        &positives.iter().map(String::as_str).collect::<Vec<_>>(),
        &look_alikes.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

#[test]
fn tls_verification_off() {
    methods(
        "src/Client.java",
        "tls-verification-off",
        &[
            "builder.setSSLHostnameVerifier(NoopHostnameVerifier.INSTANCE);",
            "builder.setSSLHostnameVerifier(new NoopHostnameVerifier());",
            "factory.setHostnameVerifier(SSLSocketFactory.ALLOW_ALL_HOSTNAME_VERIFIER);",
            "HttpsURLConnection.setDefaultHostnameVerifier((host, session) -> true);",
            "context.loadTrustMaterial(TrustAllStrategy.INSTANCE);",
            "TrustManager[] all = { new X509TrustManager() { public void checkServerTrusted(X509Certificate[] c, String a) {} } };",
            "HostnameVerifier v = new HostnameVerifier() { public boolean verify(String h, SSLSession s) { return true; } };",
        ],
        &[
            "// builder.setSSLHostnameVerifier(NoopHostnameVerifier.INSTANCE);",
            "String s = \"NoopHostnameVerifier.INSTANCE\";",
            "builder.setSSLHostnameVerifier(new DefaultHostnameVerifier());",
            "connection.setHostnameVerifier((host, session) -> host.equals(name));",
            "if (insecure) { builder.setSSLHostnameVerifier(NoopHostnameVerifier.INSTANCE); }",
            "TrustManager insecureTrust = new X509TrustManager() { public void checkServerTrusted(X509Certificate[] c, String a) {} };",
            "boolean off = verifier == NoopHostnameVerifier.INSTANCE;",
            "TrustManager t = new X509TrustManager() { public void checkServerTrusted(X509Certificate[] c, String a) { delegate.check(c); } };",
            "HostnameVerifier v = new HostnameVerifier() { public boolean verify(String h, SSLSession s) { return h.equals(name); } };",
            "Rule r = new Rule() { public boolean verify(String h) { return true; } }; SSLSession x = null;",
            "Trust t = new Trust() { public void checkServerTrusted(Peer p) {} };",
        ],
    );
}

#[test]
fn ssh_host_key_unchecked() {
    methods(
        "src/Client.java",
        "ssh-host-key-unchecked",
        &[
            "session.setConfig(\"StrictHostKeyChecking\", \"no\");",
            "JSch.setConfig(\"StrictHostKeyChecking\", \"no\");",
            "this.jsch.getSession(name).setConfig(\"StrictHostKeyChecking\", \"no\");",
        ],
        &[
            "session.setConfig(\"StrictHostKeyChecking\", \"yes\");",
            "session.setConfig(\"StrictHostKeyChecking\", mode);",
            "// session.setConfig(\"StrictHostKeyChecking\", \"no\");",
            "String s = \"setConfig(StrictHostKeyChecking, no)\";",
            "if (!strict) { session.setConfig(\"StrictHostKeyChecking\", \"no\"); }",
            "session.setConfig(\"Compression\", \"no\"); String s = \"StrictHostKeyChecking\";",
        ],
    );
}

#[test]
fn shell_from_data() {
    methods(
        "src/Client.java",
        "shell-from-data",
        &[
            "Runtime.getRuntime().exec(\"sh -c ls \" + name);",
            "Runtime.getRuntime().exec(new String[] { \"sh\", \"-c\", \"ls \" + name });",
            "Runtime.getRuntime().exec(\"cmd /c dir \" + name);",
        ],
        &[
            "// Runtime.getRuntime().exec(\"sh -c ls \" + name);",
            "String s = \"Runtime.getRuntime().exec(sh -c ls + name)\";",
            "Runtime.getRuntime().exec(new String[] { \"ls\", name });",
            "Runtime.getRuntime().exec(\"sh -c ls\");",
            "Runtime.getRuntime().exec(\"ls \" + name);",
            "executor.exec(\"sh -c \" + name); Runtime.getRuntime().gc();",
            "Runtime.getRuntime().exec(new String[] { \"git\", \"-c\", CONFIG + name });",
        ],
    );
}

#[test]
fn sql_from_data() {
    methods(
        "src/Client.java",
        "sql-from-data",
        &[
            "statement.executeQuery(\"SELECT * FROM t WHERE name = '\" + name + \"'\");",
            "statement.execute(String.format(\"DELETE FROM t WHERE name = '%s'\", name));",
            "String sql = \"UPDATE t SET a = '\" + name + \"'\"; statement.executeUpdate(sql);",
            "em.createNativeQuery(\"SELECT * FROM t WHERE id = \" + name);",
        ],
        &[
            "// statement.executeQuery(\"SELECT * FROM t WHERE name = '\" + name + \"'\");",
            "String s = \"executeQuery(SELECT * FROM t WHERE name = ' + name)\";",
            "connection.prepareStatement(\"SELECT * FROM t WHERE name = ?\");",
            "statement.executeQuery(\"SELECT * FROM \" + table);",
            "statement.executeQuery(\"SELECT * FROM t WHERE id = \" + ID);",
            "statement.executeQuery(\"SELECT * FROM t WHERE id = \" + Integer.parseInt(name));",
            "int id = next(); statement.executeQuery(\"SELECT * FROM t WHERE id = \" + id);",
            "for (long i = 0; i < 9; i++) statement.execute(\"INSERT INTO t VALUES (\" + i + \")\");",
            "statement.executeQuery(\"SELECT * FROM t\" + whereClause);",
            "runner.execute(\"task = \" + name);",
            "statement.executeQuery(\"SELECT * FROM t \" + \"WHERE id = 1\");",
        ],
    );
}

#[test]
fn unsafe_deserialisation() {
    methods(
        "src/Client.java",
        "unsafe-deserialisation",
        &[
            "ObjectInputStream in = new ObjectInputStream(socket.getInputStream());",
            "Object o = new ObjectInputStream(request.getInputStream()).readObject();",
            "ObjectInputStream in = new ObjectInputStream(new BufferedInputStream(conn.getInputStream()));",
            "InputStream raw = socket.getInputStream(); ObjectInputStream in = new ObjectInputStream(raw);",
        ],
        &[
            "// new ObjectInputStream(socket.getInputStream())",
            "String s = \"new ObjectInputStream(socket.getInputStream())\";",
            "ObjectInputStream in = new ObjectInputStream(new FileInputStream(name));",
            "ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes));",
            "ObjectOutputStream out = new ObjectOutputStream(socket.getOutputStream());",
            "DataInputStream in = new DataInputStream(socket.getInputStream());",
            "ObjectInputStream in = new SafeObjectInputStream(socket.getInputStream());",
        ],
    );
}

#[test]
fn literal_identity() {
    methods(
        "src/Client.java",
        "literal-identity",
        &[
            "if (name == \"x\") { run(); }",
            "boolean b = \"\" != name;",
            "return name.trim() == \"yes\" ? 1 : 0;",
        ],
        &[
            "if (name.equals(\"x\")) { run(); }",
            "if (name == null) { run(); }",
            "// name == \"x\"",
            "String s = \"name == \\\"x\\\"\";",
            "if (name == DEFAULT) { run(); }",
            "if (DEFAULT == \"x\") { run(); }",
            "if (\"\" != null) { run(); }",
            "if (c == 'x') { run(); }",
        ],
    );
}

#[test]
fn nan_comparison() {
    methods(
        "src/Client.java",
        "nan-comparison",
        &[
            "if (x == Double.NaN) { run(); }",
            "boolean b = Float.NaN != y;",
            "while (a.get(0) == Double.NaN) { run(); }",
        ],
        &[
            "if (Double.isNaN(x)) { run(); }",
            "double x = Double.NaN;",
            "// x == Double.NaN",
            "String s = \"x == Double.NaN\";",
            "if (x != x) { run(); }",
            "Double.compare(x, Double.NaN);",
        ],
    );
}
