# SPDX-License-Identifier: Apache-2.0
"""guest.py FOLDER NAME [first-boot]: the first process of a guest, in namespaces of its own.

The root of the guest is an overlay of this machine, with its changes in FOLDER/upper. It runs the script of the first
boot, or starts the enabled units. systemctl is replaced by this program: it runs the commands of a unit and its drop-ins
and waits for READY=1, as systemd does.
"""
import glob
import os
import socket
import subprocess
import sys
import time

UNITS = '/etc/systemd/system'
WANTED = f'{UNITS}/multi-user.target.wants'
OURS = ('pvescaler-join.service', 'k3s-agent.service')
LOG = '/var/log/guest.log'


def log(text):
    with open(LOG, 'a') as out:
        out.write(f'{text}\n')


def read_unit(name):
    settings = {}
    for path in [f'{UNITS}/{name}', *sorted(glob.glob(f'{UNITS}/{name}.d/*.conf'))]:
        if os.path.exists(path):
            for line in open(path):
                key, separator, value = line.strip().partition('=')
                if separator:
                    settings.setdefault(key, []).append(value)
    return settings


def run(command):
    ignored = command.startswith('-')
    with open(LOG, 'a') as out:
        status = subprocess.call(['sh', '-c', command.lstrip('-')], stdout=out, stderr=out)
    return 0 if ignored else status


def start_notifying(settings):
    """Runs the service in the background for ever; returns when it is ready."""
    path = f'/run/notify-{os.getpid()}'
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind(path)
    if os.fork() == 0:
        os.setsid()
        while True:
            for command in settings.get('ExecStartPre', []):
                run(command)
            env = {**os.environ, 'NOTIFY_SOCKET': path}
            with open(LOG, 'a') as out:
                status = subprocess.call(settings['ExecStart'][-1].split(), env=env, stdout=out, stderr=out)
            log(f'EXIT {status}')
            time.sleep(5)
    while b'READY=1' not in ready.recv(4096):
        pass
    log('READY')


def start(name):
    settings = read_unit(name)
    if 'ExecStart' not in settings:
        return
    if settings.get('Type', [''])[-1] == 'notify':
        start_notifying(settings)
        return
    while run(settings['ExecStart'][-1]) != 0:
        time.sleep(5)


def systemctl(words):
    words = [word for word in words if not word.startswith('-')]
    action, names = words[0], words[1:]
    for name in names:
        link = f'{WANTED}/{name}'
        if action == 'start':
            start(name)
        elif action == 'enable' and not os.path.lexists(link):
            os.makedirs(WANTED, exist_ok=True)
            os.symlink(f'{UNITS}/{name}', link)
        elif action == 'disable' and os.path.lexists(link):
            os.unlink(link)


def enter(folder):
    root = f'{folder}/root'
    for name in ('upper', 'work', 'root'):
        os.makedirs(f'{folder}/{name}', exist_ok=True)
    options = f'lowerdir=/,upperdir={folder}/upper,workdir={folder}/work'
    subprocess.check_call(['mount', '-t', 'overlay', 'overlay', '-o', options, root])
    for name in ('sys', 'dev'):
        subprocess.check_call(['mount', '--rbind', f'/{name}', f'{root}/{name}'])
    subprocess.check_call(['mount', '-t', 'proc', 'proc', f'{root}/proc'])
    subprocess.check_call(['mount', '-t', 'tmpfs', 'tmpfs', f'{root}/run'])
    # The containers of a node are not on an overlay.
    os.makedirs(f'{folder}/rancher', exist_ok=True)
    os.makedirs(f'{root}/var/lib/rancher', exist_ok=True)
    subprocess.check_call(['mount', '--bind', f'{folder}/rancher', f'{root}/var/lib/rancher'])
    os.chroot(root)
    os.chdir('/')


def main():
    if os.path.basename(sys.argv[0]) == 'systemctl':
        systemctl(sys.argv[1:])
        return
    program = open(sys.argv[0]).read()
    folder, name = sys.argv[1:3]
    enter(folder)
    socket.sethostname(name)
    log(f'BOOT {sys.argv[3:]}')
    os.makedirs('/opt/guest', exist_ok=True)
    with open('/opt/guest/systemctl', 'w') as out:
        out.write(f'#!/usr/bin/env python3\n{program}')
    os.chmod('/opt/guest/systemctl', 0o755)
    # The released program unpacks this link to itself; one built from source does not.
    if not os.path.lexists('/opt/guest/containerd'):
        os.symlink('/usr/local/bin/k3s', '/opt/guest/containerd')
    os.environ['PATH'] = f'/opt/guest:{os.environ["PATH"]}'
    if 'first-boot' in sys.argv:
        log(f'FIRST BOOT {run("/usr/local/sbin/pvescaler-first-boot")}')
    else:
        for unit in OURS:
            if os.path.lexists(f'{WANTED}/{unit}'):
                start(unit)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


main()
