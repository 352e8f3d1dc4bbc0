//! Python.

use super::table;

#[test]
fn tls_verification_off() {
    table(
        "app/client.py",
        "tls-verification-off",
        &[
            "import requests\nrequests.get(url, verify=False)\n",
            "import requests\nr = requests.post(url, json=data, verify=False)\n",
            "import requests\nsession = requests.Session()\nsession.verify = False\n",
            "import httpx\nclient = httpx.Client(verify=False)\n",
            "import aiohttp\nc = aiohttp.TCPConnector(ssl=False)\n",
            "import ssl\nctx = ssl._create_unverified_context()\n",
            "import ssl\nssl._create_default_https_context = ssl._create_unverified_context\n",
            "import ssl\nctx = ssl.create_default_context()\nctx.verify_mode = ssl.CERT_NONE\n",
            "import urllib3\nhttp = urllib3.PoolManager(cert_reqs='CERT_NONE')\n",
        ],
        &[
            "import requests\n# requests.get(url, verify=False)\n",
            "import requests\ndoc = 'requests.get(url, verify=False)'\n",
            "def f():\n    \"\"\"Use requests.get(url, verify=False).\"\"\"\n",
            "import requests\nrequests.get(url, verify=True)\n",
            "import requests\nrequests.get(url, verify=ca_bundle)\n",
            "import jwt\njwt.decode(token, key, verify=False)\n",
            "import requests\nform.get(name, default=False)\n",
            "import requests\ndef fetch(url, verify=False):\n    pass\n",
            "import requests\nif args.insecure:\n    requests.get(url, verify=False)\n",
            "import requests\ndef get_insecure(url):\n    return requests.get(url, verify=False)\n",
            "import ssl\nif not verify:\n    ctx.verify_mode = ssl.CERT_NONE\n",
            "import ssl\nclass Context:\n    def __init__(self):\n        self.verify_mode = ssl.CERT_NONE\n",
            "import ssl\nctx.verify_mode = ssl.CERT_REQUIRED\n",
            "import ssl\nif ctx.verify_mode == ssl.CERT_NONE:\n    warn()\n",
            "self.verify = False\n",
            "validate(image, verify=False)\n",
        ],
    );
}

#[test]
fn ssh_host_key_unchecked() {
    table(
        "ops/deploy.py",
        "ssh-host-key-unchecked",
        &[
            "import paramiko\nc.set_missing_host_key_policy(paramiko.AutoAddPolicy())\n",
            "import paramiko\nc.set_missing_host_key_policy(paramiko.WarningPolicy())\n",
            "from paramiko import AutoAddPolicy, SSHClient\nclient = SSHClient()\nclient.set_missing_host_key_policy(AutoAddPolicy)\n",
        ],
        &[
            "import paramiko\nc.set_missing_host_key_policy(paramiko.RejectPolicy())\n",
            "import paramiko\n# c.set_missing_host_key_policy(paramiko.AutoAddPolicy())\n",
            "import paramiko\ns = 'set_missing_host_key_policy(AutoAddPolicy())'\n",
            "import paramiko\nclass AutoAddPolicy:\n    pass\n",
            "import paramiko\nif not strict:\n    c.set_missing_host_key_policy(paramiko.AutoAddPolicy())\n",
            "import paramiko\nc.load_system_host_keys()\n",
        ],
    );
}

#[test]
fn shell_from_data() {
    table(
        "tools/run.py",
        "shell-from-data",
        &[
            "import os\nos.system(f'rm -rf {path}')\n",
            "import os\nos.system('rm -rf ' + path)\n",
            "import os\nos.system('rm -rf %s' % path)\n",
            "import os\nos.popen('cat {}'.format(name)).read()\n",
            "import subprocess\nsubprocess.run(f'git log {branch}', shell=True)\n",
            "import subprocess\ndef f(branch):\n    cmd = 'git log ' + branch\n    subprocess.check_output(cmd, shell=True)\n",
            "import subprocess\nsubprocess.getoutput('which %s' % name)\n",
        ],
        &[
            "import os\n# os.system(f'rm -rf {path}')\n",
            "import os\ns = \"os.system(f'rm -rf {path}')\"\n",
            "import os\nos.system('clear')\n",
            "import os\nos.system('%s > %s 2>&1' % (command, log))\n",
            "import os\nos.system(command)\n",
            "import os\nBUILD = 'build'\nos.system(f'rm -rf {BUILD}')\n",
            "import os\nbuild = 'build'\nos.system('rm -rf ' + build)\n",
            "import os, shlex\nos.system(f'rm -rf {shlex.quote(path)}')\n",
            "import os\nos.system('kill %d' % pid)\n",
            "import subprocess\nsubprocess.run(['git', 'log', f'{branch}'])\n",
            "import subprocess\nsubprocess.run(f'git log {branch}', shell=False)\n",
            "import subprocess\nsubprocess.run(f'{sys.executable} -m pip', shell=True)\n",
            "import subprocess\nsubprocess.run(cmd, shell=True)\n",
            "import os\nself.system(f'rm -rf {path}')\nx = 'os.system('\n",
        ],
    );
}

#[test]
fn sql_from_data() {
    table(
        "app/users.py",
        "sql-from-data",
        &[
            "cursor.execute(f\"SELECT * FROM users WHERE name = '{name}'\")\n",
            "cursor.execute(\"SELECT * FROM users WHERE name = '%s'\" % name)\n",
            "cursor.execute(\"SELECT * FROM users WHERE id = {}\".format(user_id))\n",
            "cursor.execute('DELETE FROM users WHERE name = \"' + name + '\"')\nx = 1\n",
            "def f(db, name):\n    query = f\"UPDATE t SET a = '{name}'\"\n    db.execute(query)\n",
            "User.objects.raw(f\"SELECT * FROM users WHERE email LIKE '%{email}%'\")\n",
            "conn.execute(text(f\"INSERT INTO t VALUES ('{value}')\"))\n",
        ],
        &[
            "# cursor.execute(f\"SELECT * FROM users WHERE name = '{name}'\")\n",
            "s = \"cursor.execute(f'SELECT * FROM users WHERE name = {name}')\"\nx = '.execute('\n",
            "cursor.execute('SELECT * FROM users WHERE name = %s', (name,))\n",
            "cursor.execute('SELECT * FROM users WHERE name = %(name)s', {'name': name})\n",
            "cursor.execute(f'SELECT * FROM {table}')\n",
            "cursor.execute('SELECT * FROM users WHERE id IN (%s)' % placeholders, ids)\n",
            "cursor.execute('SELECT * FROM %s WHERE id = %%s' % table, (1,))\n",
            "cursor.execute('SELECT * FROM users WHERE id = %d' % user_id)\n",
            "cursor.execute(f'SELECT * FROM users WHERE id = {int(user_id)}')\n",
            "cursor.execute(f'SELECT * FROM users WHERE kind = {KIND}')\n",
            "cursor.execute('UPDATE %s SET %s = %s' % (table, column, value))\n",
            "cursor.execute(f'DELETE FROM log WHERE age > {days}')\n",
            "cursor.execute(f'SELECT * FROM users WHERE {condition}')\n",
            "cursor.execute(f\"SELECT * FROM users WHERE name = {quote(name)}\")\n",
            "executor.execute(f'Select the value = {value}')\nx = 1\n",
            "shell.execute(f'ls {path}')\n",
        ],
    );
}

#[test]
fn code_from_data() {
    table(
        "app/calc.py",
        "code-from-data",
        &[
            "eval(f'config.{key}')\n",
            "eval(request.args['expr'])\n",
            "exec(request.data)\n",
            "result = eval(input('> '))\n",
            "expr = request.form['e']\neval(expr)\n",
            "eval('self.' + name + '()')\n",
        ],
        &[
            "# eval(request.args['expr'])\n",
            "s = \"eval(request.args['expr'])\"\n",
            "eval('1 + 1')\n",
            "model.eval()\n",
            "frame.eval(f'a + {b}')\n",
            "ast.literal_eval(request.args['expr'])\n",
            "exec(compile(source, name, 'exec'), namespace)\n",
            "exec(f'class {name}: pass', namespace)\n",
            "eval(expression, namespace)\n",
            "def eval(x):\n    return x\n",
        ],
    );
}

#[test]
fn unsafe_deserialisation() {
    table(
        "app/load.py",
        "unsafe-deserialisation",
        &[
            "import yaml\nconfig = yaml.load(stream)\n",
            "import yaml\nconfig = yaml.load(stream, Loader=yaml.Loader)\n",
            "import yaml\nconfig = yaml.load(stream, yaml.UnsafeLoader)\n",
            "import yaml\nconfig = yaml.unsafe_load(stream)\n",
            "import pickle\nobj = pickle.loads(request.data)\n",
            "import pickle\ndef f(sock):\n    data = sock.recv(4096)\n    return pickle.loads(data)\n",
            "import pickle, base64\nobj = pickle.loads(base64.b64decode(request.cookies['s']))\n",
        ],
        &[
            "import yaml\n# yaml.load(stream)\n",
            "import yaml\ns = 'yaml.load(stream)'\n",
            "import yaml\nyaml.safe_load(stream)\n",
            "import yaml\nyaml.load(stream, Loader=yaml.SafeLoader)\n",
            "import yaml\nyaml.load(stream, Loader=yaml.CSafeLoader)\n",
            "import yaml\nyaml.load(stream, Loader=yaml.FullLoader)\n",
            "import yaml\nyaml.load(stream, Loader=UniqueKeyLoader)\n",
            "from ruamel import yaml\nyaml.load(stream)\n",
            "from ruamel.yaml import YAML\nyaml = YAML()\nyaml.load(stream)\n",
            "import pickle\nobj = pickle.loads(self.cached)\n",
            "import pickle\nobj = pickle.load(handle)\n",
            "import json\nobj = json.loads(request.data)\n",
        ],
    );
}

#[test]
fn debug_server_exposed() {
    table(
        "app/main.py",
        "debug-server-exposed",
        &[
            "app.run(host='0.0.0.0', debug=True)\n",
            "app.run(debug=True, port=80, host=\"0.0.0.0\")\n",
            "if __name__ == '__main__':\n    server.run(\n        host='0.0.0.0',\n        debug=True,\n    )\n",
        ],
        &[
            "app.run(debug=True)\n",
            "app.run(host='0.0.0.0')\n",
            "app.run(host='127.0.0.1', debug=True)\n",
            "app.run(host='0.0.0.0', debug=False)\n",
            "# app.run(host='0.0.0.0', debug=True)\n",
            "s = \"app.run(host='0.0.0.0', debug=True)\"\n",
            "def run(host='0.0.0.0', debug=True):\n    pass\n",
        ],
    );
}

#[test]
fn debugger_left() {
    table(
        "app/view.py",
        "debugger-left",
        &[
            "def f():\n    breakpoint()\n",
            "import pdb; pdb.set_trace()\n",
            "import ipdb\nipdb.set_trace()\n",
            "import pydevd\npydevd.settrace('localhost')\n",
        ],
        &[
            "# breakpoint()\n",
            "s = 'import pdb; pdb.set_trace()'\n",
            "def f():\n    \"\"\"Stops at breakpoint().\"\"\"\n",
            "def breakpoint():\n    pass\nbreakpoint()\n",
            "gdb.breakpoint()\n",
            "if options.pdb:\n    pdb.set_trace()\n",
            "def set_trace():\n    pdb.set_trace()\n",
            "def set_break(self):\n    pdb.set_trace()\n",
            "hook = breakpoint\n",
            "tracer.set_trace()\n",
        ],
    );
}

#[test]
fn mutated_default_argument() {
    table(
        "app/tree.py",
        "mutated-default-argument",
        &[
            "def f(x, seen=[]):\n    seen.append(x)\n    return seen\n",
            "def f(x, headers={}):\n    headers[x] = 1\n    return headers\n",
            "def f(x, seen: set = set()):\n    if x:\n        seen.add(x)\n    return seen\n",
            "class A:\n    def f(self, out=[]):\n        for x in self.y:\n            out.extend(x)\n        return out\n",
        ],
        &[
            "def f(x, seen=None):\n    seen.append(x)\n",
            "def f(x, seen=[]):\n    return x in seen\n",
            "def f(x, seen=[]):\n    seen = list(seen)\n    seen.append(x)\n    return seen\n",
            "def f(x, seen=()):\n    return seen\n",
            "# def f(x, seen=[]): seen.append(x)\n",
            "s = 'def f(x, seen=[]): seen.append(x)'\n",
            "def f(x, seen=[]):\n    other.append(seen)\n",
            "def f(x, _cache={}):\n    _cache[x] = 1\n    return _cache\n",
            "def f(x, headers={}):\n    headers.pop(x, None)\n    return headers\n",
            "def f(x, memo={}):\n    memo[x] = 1\n",
            "f(x, seen=[])\nseen.append(x)\n",
        ],
    );
}

#[test]
fn assert_on_tuple() {
    table(
        "app/check.py",
        "assert-on-tuple",
        &[
            "assert (x > 0, 'positive')\n",
            "def f():\n    assert(a == b, \"equal\")\n",
            "assert (\n    x,\n    'message',\n)\n",
        ],
        &[
            "assert x > 0, 'positive'\n",
            "assert (x > 0), 'positive'\n",
            "assert (x in (1, 2))\n",
            "# assert (x > 0, 'positive')\n",
            "s = \"assert (x > 0, 'positive')\"\n",
            "self.assertTrue((x, y))\n",
            "assert (f(a, b))\n",
            "assert ()\nx = (1, 2)\n",
        ],
    );
}

#[test]
fn except_with_or() {
    table(
        "app/io.py",
        "except-with-or",
        &[
            "try:\n    f()\nexcept ValueError or KeyError:\n    pass\n",
            "try:\n    f()\nexcept (OSError or json.JSONDecodeError) as e:\n    pass\n",
            "try:\n    f()\nexcept OSError or ValueError as error:\n    raise\n",
        ],
        &[
            "try:\n    f()\nexcept (ValueError, KeyError):\n    pass\n",
            "try:\n    f()\nexcept ValueError:  # this or that\n    pass\n",
            "# except ValueError or KeyError:\n",
            "s = 'except ValueError or KeyError:'\n",
            "try:\n    f()\nexcept Exception or Exception:\n    pass\n",
            "try:\n    f()\nexcept errors or Exception:\n    pass\n",
            "try:\n    f()\nexcept ValueError:\n    x = a or b\n",
        ],
    );
}

#[test]
fn raise_notimplemented() {
    table(
        "app/base.py",
        "raise-notimplemented",
        &[
            "def f():\n    raise NotImplemented\n",
            "def f():\n    raise NotImplemented('later')\n",
            "class A:\n    def g(self): raise NotImplemented()\n",
        ],
        &[
            "def f():\n    raise NotImplementedError\n",
            "def f():\n    raise NotImplementedError('later')\n",
            "def __eq__(self, other):\n    return NotImplemented\n",
            "# raise NotImplemented\n",
            "s = 'raise NotImplemented'\n",
            "def f():\n    raise errors.NotImplemented()\n",
        ],
    );
}

#[test]
fn literal_identity() {
    table(
        "app/cmp.py",
        "literal-identity",
        &[
            "if mode is 'r':\n    pass\n",
            "if name is not \"\":\n    pass\n",
            "x = 'a' is y\n",
        ],
        &[
            "if mode == 'r':\n    pass\n",
            "if mode is None:\n    pass\n",
            "# mode is 'r'\n",
            "s = \"mode is 'r'\"\n",
            "if mode is MODE:\n    pass\n",
            "if mode in 'rw':\n    pass\n",
            "f(\"it is \" 'x')\n",
        ],
    );
}

#[test]
fn nan_comparison() {
    table(
        "app/num.py",
        "nan-comparison",
        &[
            "if x == math.nan:\n    pass\n",
            "if np.nan != y:\n    pass\n",
            "ok = x == float('nan')\n",
        ],
        &[
            "if math.isnan(x):\n    pass\n",
            "x = math.nan\n",
            "if x is np.nan:\n    pass\n",
            "# x == math.nan\n",
            "s = 'x == math.nan'\n",
            "f(value=float('nan'))\n",
            "if x != x:\n    pass\n",
        ],
    );
}
