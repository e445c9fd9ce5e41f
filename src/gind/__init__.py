"""gind"""
