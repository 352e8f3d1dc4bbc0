//! JavaScript and TypeScript.

use super::table;

#[test]
fn tls_verification_off() {
    for path in ["src/client.js", "src/client.ts", "src/client.tsx"] {
        table(
            path,
            "tls-verification-off",
            &[
                "const agent = new https.Agent({ rejectUnauthorized: false });\n",
                "request({ url, agentOptions: { 'rejectUnauthorized': false } });\n",
                "options.rejectUnauthorized = false;\n",
                "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';\n",
                "process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = 0;\n",
                "const pool = new Pool({ ssl: { rejectUnauthorized: false } });\n",
            ],
            &[
                "// new https.Agent({ rejectUnauthorized: false })\n",
                "/* options.rejectUnauthorized = false; */\n",
                "const help = 'set rejectUnauthorized: false to skip';\n",
                "const help = `{ rejectUnauthorized: false }`;\n",
                "const agent = new https.Agent({ rejectUnauthorized: true });\n",
                "const agent = new https.Agent({ rejectUnauthorized: !insecure });\n",
                "const agent = new https.Agent({ rejectUnauthorized });\n",
                "if (options.insecure) { agentOptions.rejectUnauthorized = false; }\n",
                "const agent = insecure ? new Agent({ rejectUnauthorized: false }) : undefined;\n",
                "function insecureAgent() { return new Agent({ rejectUnauthorized: false }); }\n",
                "tls.createServer({ requestCert: true, rejectUnauthorized: false });\n",
                "delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;\n",
                "process.env.NODE_TLS_REJECT_UNAUTHORIZED = '1';\n",
                "if (process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0') warn();\n",
                "const x = { rejectUnauthorizedUsers: false };\n",
            ],
        );
    }
    table(
        "test/client.js",
        "tls-verification-off",
        &[],
        &["const agent = new https.Agent({ rejectUnauthorized: false });\n"],
    );
}

#[test]
fn shell_from_data() {
    table(
        "scripts/release.js",
        "shell-from-data",
        &[
            "const { exec } = require('child_process');\nexec(`git log ${branch}`, done);\n",
            "const cp = require('child_process');\ncp.execSync('rm -rf ' + dir);\n",
            "import { execSync } from 'node:child_process';\nfunction f(tag) { execSync(`git tag ${tag}`); }\n",
            "const { execSync } = require('child_process');\nfunction f(url) { const cmd = `curl ${url}`; return execSync(cmd); }\n",
            "require('child_process').exec('ping ' + req.query.host);\n",
            "const shell = require('shelljs');\nshell.exec(`npm view ${name} version`);\n",
        ],
        &[
            "const { exec } = require('child_process');\n// exec(`git log ${branch}`)\n",
            "const { exec } = require('child_process');\nlog('exec(`git log ${branch}`)');\n",
            "const { exec } = require('child_process');\nexec('git log');\n",
            "const { exec } = require('child_process');\nconst DIR = 'build';\nexec(`rm -rf ${DIR}`);\n",
            "const { exec } = require('child_process');\nconst dir = 'build';\nexec(`rm -rf ${dir}`);\n",
            "const { execFile } = require('child_process');\nexecFile('git', ['log', `${branch}`]);\n",
            "const { spawn } = require('child_process');\nspawn('git', ['log', branch]);\n",
            "const { exec } = require('child_process');\nexec(cmd);\n",
            "const m = /a/.exec(`x ${y}`);\nconst { spawn } = require('child_process');\n",
            "const match = pattern.exec('a' + b);\n",
            "const { execSync } = require('child_process');\nexecSync(`node ${path.join(__dirname, 'x.js')}`);\n",
            "const { execSync } = require('child_process');\nexecSync(`git log ${shellQuote(branch)}`);\n",
            "await exec.exec(`git log ${branch}`);\nconst e = require('@actions/exec');\n",
            "const { execSync } = require('child_process');\nexecSync(`${binary} --version`);\n",
            "const { execSync } = require('child_process');\nexecSync(`\"${binary}\" -install`);\n",
            "db.exec(`PRAGMA user_version = ${version}`);\n",
        ],
    );
}

#[test]
fn sql_from_data() {
    table(
        "src/users.ts",
        "sql-from-data",
        &[
            "db.query(`SELECT * FROM users WHERE name = '${name}'`);\n",
            "await pool.query('SELECT * FROM users WHERE id = ' + req.params.id);\n",
            "connection.execute(`UPDATE users SET name = '${name}' WHERE id = ?`, [id]);\n",
            "knex.raw(`select * from users where email like '%${email}%'`);\n",
            "prisma.$queryRawUnsafe(`SELECT * FROM \"User\" WHERE email = ${email}`);\n",
            "function find(id) { const sql = `DELETE FROM t WHERE id = ${id}`; return db.query(sql); }\n",
            "db.run(`INSERT INTO t (a, b) VALUES ('${a}', ?)`);\n",
        ],
        &[
            "// db.query(`SELECT * FROM users WHERE name = '${name}'`)\n",
            "const doc = \"db.query(`SELECT * FROM users WHERE name = '${name}'`)\";\n",
            "db.query('SELECT * FROM users WHERE name = ?', [name]);\n",
            "db.query(sql`SELECT * FROM users WHERE name = ${name}`);\n",
            "prisma.$queryRaw`SELECT * FROM users WHERE name = ${name}`;\n",
            "db.query(`SELECT * FROM ${table} WHERE id = ?`, [id]);\n",
            "db.query(`SELECT * FROM users WHERE id IN (${placeholders})`, ids);\n",
            "db.query(`SELECT * FROM users WHERE ${where}`, params);\n",
            "db.query(`SELECT * FROM users WHERE id = ${ADMIN_ID}`);\n",
            "db.query(`SELECT * FROM users WHERE id = ${escape(id)}`);\n",
            "db.query(`SELECT * FROM users WHERE id = ${Number(id)}`);\n",
            "const limit = 10;\ndb.query(`SELECT * FROM users WHERE n < ${limit}`);\n",
            "graphql.query(`query { user(id: \"${id}\") { name } }`);\n",
            "params.get(`update-${id}`);\n",
            "log.run(`Selected value = ${value}`);\n",
        ],
    );
}

#[test]
fn code_from_data() {
    table(
        "src/calc.js",
        "code-from-data",
        &[
            "eval('config.' + key);\n",
            "eval(req.body.expression);\n",
            "const f = new Function('x', req.query.body);\n",
            "vm.runInNewContext(request.body.code, {});\n",
            "eval(`${name}()`);\neval",
            "window.eval(location.hash.slice(1));\n",
        ],
        &[
            "eval('(' + KEY + ')');\n",
            "// eval('config.' + key)\n",
            "const s = \"eval('config.' + key)\";\n",
            "eval('1 + 1');\n",
            "model.eval();\n",
            "redis.eval('return ' + key);\n",
            "page.$eval('a' + id, el => el.href);\n",
            "const f = new Function('return this');\n",
            "const f = new Function('a', body);\n",
            "vm.runInNewContext(code, {});\n",
            "const KEY = 'x';\neval('config.' + KEY);\n",
            "evaluate('config.' + key);\n",
        ],
    );
}

#[test]
fn unsafe_deserialisation() {
    table(
        "src/session.js",
        "unsafe-deserialisation",
        &[
            "const serialize = require('node-serialize');\nconst s = serialize.unserialize(str);\n",
            "import { unserialize } from 'node-serialize';\nunserialize(cookie);\n",
            "const ns = require('node-serialize');\nmodule.exports = (req) => ns.unserialize(req.cookies.profile);\n",
        ],
        &[
            "const php = require('php-serialize');\nphp.unserialize(str);\n",
            "const serialize = require('node-serialize');\n// serialize.unserialize(str)\n",
            "const serialize = require('node-serialize');\nlog('unserialize(str)');\n",
            "const serialize = require('node-serialize');\nserialize.serialize(obj);\n",
            "const serialize = require('node-serialize');\nserialize.unserialize('{\"a\":1}');\n",
            "JSON.parse(req.body);\n",
        ],
    );
}

#[test]
fn debugger_left() {
    table(
        "src/app.jsx",
        "debugger-left",
        &[
            "debugger;\n",
            "function f() {\n  debugger\n  return 1;\n}\n",
            "const f = () => { if (x) { debugger; } return <p>{x}</p>; };\n",
        ],
        &[
            "// debugger;\n",
            "/* debugger; */\n",
            "const s = 'debugger;';\n",
            "const s = `\ndebugger;\n`;\n",
            "const debuggerUrl = page.debugger.url();\n",
            "const re = /debugger;/;\n",
            "const o = { debugger: true };\n",
        ],
    );
}

#[test]
fn focused_test() {
    table(
        "src/app.test.ts",
        "focused-test",
        &[
            "describe.only('app', () => {});\n",
            "it.only('works', async () => {});\n",
            "test.only('works', function () {});\n",
            "fit('works', () => {});\n",
            "fdescribe('app', () => {});\n",
            "test.describe.only('group', () => {});\n",
            "it.only.each([1, 2])('adds %i', () => {});\n",
        ],
        &[
            "// it.only('works', () => {});\n",
            "const s = \"it.only('works', () => {})\";\n",
            "const source = `${x} it.only('works', () => {});`;\n",
            "it('works', () => {});\n",
            "it.skip('works', () => {});\n",
            "fit(model, data);\nfunction fit(a, b) {}\n",
            "model.fit('x', () => {});\n",
            "query.only('name', () => {});\n",
            "suite.only = function () {};\n",
            "it.only;\n",
        ],
    );
    // The runner's own code, and data for tests, hold the words for other reasons.
    table(
        "src/runner.js",
        "focused-test",
        &[],
        &["describe.only('app', () => {});\n"],
    );
    table(
        "test/fixtures/only.spec.js",
        "focused-test",
        &[],
        &["it.only('app', () => {});\n"],
    );
}

#[test]
fn nan_comparison() {
    table(
        "src/math.js",
        "nan-comparison",
        &[
            "if (x === NaN) fail();\n",
            "if (Number.NaN == y) fail();\n",
            "const bad = parseInt(s) !== NaN;\n",
        ],
        &[
            "// x === NaN\n",
            "const s = 'x === NaN';\n",
            "if (Number.isNaN(x)) fail();\n",
            "let x = NaN;\n",
            "const f = (x = NaN) => x;\n",
            "if (x !== x) fail();\n",
            "if (x === NaNny) fail();\n",
            "expect(Object.is(x, NaN)).toBe(true);\n",
        ],
    );
}

#[test]
fn declared_numbers_cannot_carry_sql() {
    table(
        "src/users.ts",
        "sql-from-data",
        &["function f(id: string) { db.query(`SELECT * FROM t WHERE id = ${id}`); }\n"],
        &[
            "function f(id: number) { db.query(`SELECT * FROM t WHERE id = ${id}`); }\n",
            "const f = (id: number) => db.query(`SELECT * FROM t WHERE id = ${id}`);\n",
        ],
    );
}
