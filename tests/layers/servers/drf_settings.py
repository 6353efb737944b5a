"""A project with the least that djangorestframework-mcp-server runs on."""

import os

SECRET_KEY = "of no use to anybody"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "rest_framework"]
MIDDLEWARE: list[str] = []
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ROOT_URLCONF = os.environ.get("ROOT_URLCONF", "on_drf_mcp")
ALLOWED_HOSTS = ["127.0.0.1"]
