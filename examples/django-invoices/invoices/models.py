"""Customers, and invoices with lines."""

from decimal import Decimal

from django.db import models


class Customer(models.Model):
    """A customer, who pays invoices."""

    name = models.CharField(max_length=80, unique=True)

    def __str__(self):
        return self.name


class Invoice(models.Model):
    """An invoice."""

    class Status(models.TextChoices):
        """Status of an invoice."""

        DRAFT = "draft"
        SENT = "sent"
        PAID = "paid"

    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="invoices")
    number = models.CharField(max_length=20, unique=True)
    status = models.CharField(max_length=5, choices=Status.choices, default=Status.DRAFT)
    due = models.DateField(null=True, blank=True)

    class Meta:
        ordering = ("pk",)

    def __str__(self):
        return self.number

    @property
    def total(self):
        """Sum of the amounts of all lines."""
        return sum((line.amount for line in self.lines.all()), Decimal(0))


class Line(models.Model):
    """One line of an invoice."""

    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines")
    what = models.CharField(max_length=120)
    amount = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self):
        return self.what
